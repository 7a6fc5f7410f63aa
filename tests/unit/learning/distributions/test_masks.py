"""A masked action is never chosen, and nothing is learnt about it."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from relaax.learning.distributions import (
    ActionValues,
    Bernoulli,
    Categorical,
    MultiDiscrete,
    ValuesOfChoices,
)

pytestmark = pytest.mark.usefixtures("tensorflow")

DISTRIBUTIONS = {
    "categorical": Categorical(5),
    "multi-discrete": MultiDiscrete((2, 3)),
    "bernoulli": Bernoulli((5,)),
}

#: What is forbidden is what the network would choose most often.
LOGITS = np.array([[1.0, 9.0, 0.5, 9.0, -1.0], [0.0, -0.5, 3.0, 1.0, 0.3]], np.float32)
MASK = np.array([[1, 0, 1, 0, 1], [0, 1, 1, 0, 0]], np.uint8)


@pytest.fixture(name="distribution", params=DISTRIBUTIONS)
def _distribution(request):
    return DISTRIBUTIONS[request.param]


@pytest.fixture(name="graph")
def _graph(distribution):
    from relaax.learning.distributions.graph_tf import graph_of

    return graph_of(distribution)


def chosen_logits(distribution, actions):
    """Which logits [B, 5] actions [B, ...] have chosen."""
    if isinstance(distribution, Bernoulli):
        return actions.astype(bool)
    if isinstance(distribution, Categorical):
        return np.eye(5, dtype=bool)[actions]
    first, second = actions.T
    return np.concatenate([np.eye(2, dtype=bool)[first], np.eye(3, dtype=bool)[second]], axis=1)


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_])
def test_a_masked_action_is_not_chosen_in_a_million_draws(distribution, dtype):
    random, pieces = np.random.default_rng(3), 10
    masked = distribution.masked(LOGITS, MASK.astype(dtype))
    count = 10**6 // pieces
    seen = np.zeros_like(MASK)
    for row, mask in enumerate(MASK):
        outputs = np.repeat(masked[row : row + 1], count, axis=0)
        for _ in range(pieces):
            actions = distribution.choose(outputs, distribution.noise(random, count))
            chosen = chosen_logits(distribution, actions)
            assert not chosen[:, mask == 0].any()
            seen[row] |= chosen.any(axis=0)
    np.testing.assert_array_equal(seen, MASK)


@pytest.mark.parametrize(
    "values", [ActionValues(5), ActionValues(4, is_dueling=True), ActionValues(1, True, 2)]
)
def test_a_masked_action_is_never_the_one_of_the_highest_value(values):
    from relaax.learning.distributions.graph_tf import graph_head_of

    outputs, graph = LOGITS[:, : values.outputs], graph_head_of(values)
    for mask in itertools.product((0, 1), repeat=values.actions):
        if not any(mask):
            continue
        masks = np.tile(np.uint8(mask), (len(outputs), 1))
        expected = np.where(masks, values.values(outputs), -np.inf).argmax(axis=1)
        masked = values.masked(outputs, masks)
        np.testing.assert_array_equal(values.mode(masked), expected)
        np.testing.assert_array_equal(graph.mode(graph.masked(outputs, masks)), expected)
        np.testing.assert_allclose(graph.values(masked), values.values(masked), rtol=1e-6)


def test_of_several_choices_each_is_the_allowed_action_of_the_highest_value():
    from relaax.learning.distributions.graph_tf import graph_head_of

    values = ValuesOfChoices(choices=3, actions=2)
    graph, random = graph_head_of(values), np.random.default_rng(4)
    outputs, noise = random.normal(size=(2, 50, 6)).astype(np.float32)
    masks = random.integers(0, 2, (50, 6), dtype=np.uint8)
    masks[:, ::2] |= 1 - masks[:, 1::2]  # one is allowed
    for sums, mask in ((outputs + noise, np.ones_like(masks)), (outputs + noise, masks)):
        expected = [
            [max(np.flatnonzero(m[i : i + 2]), key=lambda a: s[i + a]) for i in (0, 2, 4)]
            for s, m in zip(sums, mask, strict=True)
        ]
        chosen = values.choose(values.masked(outputs, mask), noise)
        np.testing.assert_array_equal(chosen, expected)
        np.testing.assert_array_equal(graph.choose(graph.masked(outputs, mask), noise), expected)


def test_both_sides_mask_the_same(distribution, graph):
    masked = distribution.masked(LOGITS, MASK)
    assert masked.dtype == np.float32
    for mask in (MASK, MASK.astype(np.bool_)):
        np.testing.assert_array_equal(graph.masked(LOGITS, mask), masked)
    three = graph.masked(LOGITS[:, np.newaxis], MASK[:, np.newaxis])
    np.testing.assert_array_equal(three[:, 0], masked)


def test_a_mask_that_allows_all_changes_nothing(distribution, graph):
    for side in (distribution, graph):
        np.testing.assert_array_equal(side.masked(LOGITS, np.ones_like(MASK)), LOGITS)


def test_no_gradient_reaches_the_output_of_a_masked_action(distribution, graph):
    import tensorflow as tf

    actions = distribution.mode(distribution.masked(LOGITS, MASK))
    logits = tf.constant(LOGITS)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(logits)
        masked = graph.masked(logits, MASK)
        terms = {
            "likelihood": graph.log_likelihood(masked, actions),
            "entropy": graph.entropy(masked),
            "divergence": graph.kl(masked, graph.masked(LOGITS[::-1], MASK)),
        }
    for term in terms.values():
        gradient = tape.gradient(term, logits).numpy()
        assert np.isfinite(gradient).all()
        assert (gradient[MASK == 0] == 0).all()
        assert (gradient[0, MASK[0] == 1] != 0).any()


def test_likelihood_entropy_and_divergence_are_those_of_what_is_left():
    from relaax.learning.distributions.graph_tf import graph_of

    distribution = Categorical(5)
    in_graph = graph_of(distribution)
    masked = distribution.masked(LOGITS, MASK)
    others = distribution.masked(LOGITS[::-1], MASK)
    actions = np.array([2, 2])
    for row in range(2):
        left = MASK[row] == 1
        p, q = (special.softmax(x[row, left].astype(float)) for x in (LOGITS, LOGITS[::-1]))
        index = np.flatnonzero(left).tolist().index(2)
        likelihood = distribution.log_likelihood(masked, actions)[row]
        np.testing.assert_allclose(likelihood, np.log(p[index]), rtol=1e-5)
        np.testing.assert_allclose(in_graph.entropy(masked)[row], stats.entropy(p), rtol=1e-5)
        np.testing.assert_allclose(in_graph.kl(masked, others)[row], stats.entropy(p, q), rtol=1e-4)


def test_a_masked_bit_is_sure_to_be_zero():
    from relaax.learning.distributions.graph_tf import graph_of

    distribution = Bernoulli((5,))
    in_graph = graph_of(distribution)
    masked = distribution.masked(LOGITS, MASK)
    actions = distribution.mode(masked)
    for row, left in enumerate(MASK == 1):
        bits = stats.bernoulli(special.expit(LOGITS[row, left].astype(float)))
        likelihood = bits.logpmf(actions[row, left]).sum()
        found = distribution.log_likelihood(masked, actions)[row]
        np.testing.assert_allclose(found, likelihood, rtol=1e-5)
        np.testing.assert_allclose(in_graph.entropy(masked)[row], bits.entropy().sum(), rtol=1e-4)


def test_with_nothing_allowed_all_is_uniform_and_teaches_nothing(distribution, graph):
    """For bits, all of them are 0: that is an action, too."""
    import tensorflow as tf

    nothing = np.zeros_like(MASK)
    logits = tf.constant(LOGITS)
    actions = distribution.mode(distribution.masked(LOGITS, nothing))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        masked = graph.masked(logits, nothing)
        likelihood = graph.log_likelihood(masked, actions)
        total = likelihood + graph.entropy(masked)
    assert (tape.gradient(total, logits).numpy() == 0).all()
    choices = {Categorical: 5, MultiDiscrete: 6, Bernoulli: 1}[type(distribution)]
    np.testing.assert_allclose(likelihood, [-np.log(choices)] * 2, rtol=1e-6)
    entropy = graph.entropy(graph.masked(LOGITS, nothing))
    np.testing.assert_allclose(entropy, [np.log(choices)] * 2, rtol=1e-6)
