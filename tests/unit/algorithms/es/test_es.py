"""Evolution strategies beside numpy: ranks, mirrored candidates, and the step of their mean."""

import numpy as np
import pytest
from clock import Clock
from population_episodes import episode
from processes import REPOSITORY

from relaax.algorithm_base import Version
from relaax.assembly.parts import Home
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.errors import OtherConfiguration
from relaax.learning.population import learner as learner_module
from relaax.learning.population.learner import centred_ranks

SECTION = {
    "state_size": [3], "action_size": 2, "hidden_layers": [4], "candidates": 4, "sigma": 0.5,
    "learning_rate": 0.1, "weight_decay": 0, "seed": 7,
}  # fmt: skip


@pytest.fixture(name="es", scope="module")
def _es():
    return load_algorithm(REPOSITORY / "algorithms" / "es").module


def config_of(es, **keys):
    return es.Config({**SECTION, **keys})


def learner_of(es, **keys):
    return es.Builder(config_of(es, **keys)).learner(Home(1, np.random.default_rng(0), None))


def publish(learner, version=1):
    """Publish the mean, as its process does; return the vector."""
    (vector,) = learner.values().values()
    learner.published("default", Version(version))
    return vector


class Publication:
    """A published mean as workers see it, and the candidates that they make of it."""

    def __init__(self, es, learner, **keys):
        config = config_of(es, **keys)
        self.vector, self.imprint = publish(learner), config.imprint()
        self.mean = self.vector[: config.network.manifest.size]
        self.stamp = self.vector[self.imprint.stamp]
        self.variant_of = es.Builder(config).policy(1).variant_of

    def candidate(self, place):
        return self.variant_of(f"candidate-{place}", self.vector)


def test_ranks_are_centred_and_equal_scores_share_theirs():
    assert centred_ranks([5.0, -1.0, 20.0]).tolist() == [0, -0.5, 0.5]
    assert centred_ranks([3.0, 3.0, 1.0]).tolist() == [0.25, 0.25, -0.5]
    assert centred_ranks([2.0]).tolist() == [-0.5]


def test_workers_make_the_candidates_in_mirrored_pairs_around_the_mean(es):
    learner = learner_of(es)
    made = Publication(es, learner)
    one, mirrored, other = (made.candidate(place) for place in range(3))
    np.testing.assert_allclose(one - made.mean, made.mean - mirrored, atol=1e-5)
    assert np.abs(other - one).min() > 0
    np.testing.assert_array_equal(made.candidate(0), one)
    assert np.std(one - made.mean) == pytest.approx(0.5, rel=0.5)
    for place in range(4):
        list(learner.steps({"episodes": episode(f"candidate-{place}", made.stamp, place)}))
    later = Publication(es, learner)
    assert (later.stamp != made.stamp).any()
    assert (later.candidate(0) - later.mean != one - made.mean).any(), "other noise"


def test_workers_take_the_deviation_and_the_noise_of_the_publication_not_of_their_own_keys(es):
    learner = learner_of(es, sigma=0.25)
    (vector,) = learner.values().values()
    makers = [
        es.Builder(config_of(es, **keys)).policy(1)
        for keys in ({"sigma": 0.25}, {"sigma": 9.0, "seed": 99, "learning_rate": 1.0})
    ]
    own, other = (parts.variant_of("candidate-2", vector) for parts in makers)
    np.testing.assert_array_equal(own, other)
    for parts in makers:
        parts.imprint.require(vector)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"candidates": 6}, "candidates: the population was published with another value"),
        ({"longest_episode": 7}, "longest_episode: the population"),
        ({"hidden_layers": [5]}, "vectors have 42 numbers, and 48 by"),
        ({"hidden_layers": [3, 2]}, "hidden_layers: the population"),
        ({"filter_states": True}, "another network or filter_states"),
    ],
)
def test_workers_refuse_a_population_of_other_keys_by_their_names(es, keys, reason):
    vector = publish(learner_of(es))
    imprint = config_of(es, **keys).imprint()
    with pytest.raises(OtherConfiguration, match=reason):
        imprint.require(vector)


@pytest.mark.parametrize("keys", [{"candidates": 8}, {"longest_episode": 7}])
def test_a_checkpoint_is_of_a_population_of_the_same_keys(es, keys):
    """Workers would refuse the restored population: the parameter server does it, by name."""
    found, others = (es.Config({**SECTION, **more}).fingerprint() for more in ({}, keys))
    assert {key for key in found if found[key] != others[key]} == {*keys}


def test_the_mean_goes_up_the_gradient_that_ranks_estimate(es):
    learner = learner_of(es)
    made = Publication(es, learner)
    scores = [3.0, 9.0, -2.0, 7.0]
    steps = [
        step
        for place, score in enumerate(scores)
        for step in learner.steps({"episodes": episode(f"candidate-{place}", made.stamp, score)})
    ]
    assert [step.updates for step in steps] == [0, 0, 0, 1]
    assert (steps[-1].terms["mean score"], steps[-1].terms["best score"]) == (4.25, 9.0)
    seeds = [[*made.stamp.astype(int), pair] for pair in range(2)]
    draws = (np.random.default_rng(seed) for seed in seeds)
    noise = [draw.standard_normal(made.mean.size, np.float32) for draw in draws]
    np.testing.assert_allclose(made.candidate(3), made.mean - 0.5 * noise[1], rtol=1e-5)
    ranks = np.array([-1 / 6, 1 / 2, -1 / 2, 1 / 6])
    gradient = ((ranks[0] - ranks[1]) * noise[0] + (ranks[2] - ranks[3]) * noise[1]) / (4 * 0.5)
    assert steps[-1].terms["gradient norm"] == pytest.approx(np.linalg.norm(gradient), rel=1e-4)
    # The first step of Adam is as long as its rate, along the sign of the gradient.
    moved = publish(learner)[: made.mean.size] - made.mean
    np.testing.assert_allclose(moved, 0.1 * np.sign(gradient), rtol=1e-3)


def test_it_climbs_to_the_optimum_of_a_quadratic(es):
    keys = {"candidates": 32, "sigma": 0.1, "learning_rate": 0.05}
    learner = learner_of(es, **keys)
    goal = np.linspace(-1, 1, config_of(es).network.manifest.size)
    distances = []
    for _ in range(150):
        made = Publication(es, learner, **keys)
        distances.append(np.linalg.norm(made.mean - goal))
        for place in range(32):
            score = -np.square(made.candidate(place) - goal).sum()
            list(learner.steps({"episodes": episode(f"candidate-{place}", made.stamp, score)}))
    assert distances[-1] < 0.2 * distances[0]


def test_episodes_of_another_generation_or_of_a_candidate_that_has_its_score_do_not_count(es):
    learner = learner_of(es, candidates=2)
    stamp = Publication(es, learner, candidates=2).stamp
    others = [
        episode("candidate-1", stamp + 1, 1.0),
        episode("candidate-1", stamp, 1.0, is_complete=False),
        episode("default", stamp, 1.0),
        episode("candidate-0", stamp, 1.0),
        episode("candidate-0", stamp, 1.0),
    ]
    for other in others:
        (step,) = learner.steps({"episodes": other})
        assert step.updates == 0
    (step,) = learner.steps({"episodes": episode("candidate-1", stamp, 3.0)})
    assert (step.updates, step.terms["mean score"]) == (1, 2.0)


def test_a_mean_that_the_parameter_server_has_lost_is_published_again(es, monkeypatch):
    """Episodes of other generations alone come; those of both publications count, whichever."""
    clock = Clock(0.0)
    monkeypatch.setattr(learner_module, "monotonic", clock)
    learner = learner_of(es, candidates=2)
    vector = publish(learner, 5)
    stamp = vector[config_of(es, candidates=2).imprint().stamp]
    list(learner.steps({"episodes": episode("candidate-0", stamp, 1.0)}))
    for seconds in (59.0, 2.0):
        assert learner.values() == {}
        clock.now += seconds
        list(learner.steps({"episodes": episode("candidate-1", stamp + 1, 1.0)}))
    np.testing.assert_array_equal(publish(learner, 5), vector)
    (step,) = learner.steps({"episodes": episode("candidate-1", stamp, 3.0)})
    assert (step.updates, step.terms["mean score"]) == (1, 2.0)


def test_it_goes_on_from_its_state(es):
    learner, other = learner_of(es), learner_of(es, seed=8)
    stamp = Publication(es, learner).stamp
    for place in range(4):
        list(learner.steps({"episodes": episode(f"candidate-{place}", stamp, place)}))
    state = {name: array.copy() for name, array in learner.state().items()}
    other.restore(state)
    for name, array in other.state().items():
        np.testing.assert_array_equal(array, state[name])
    mine, restored = Publication(es, learner), Publication(es, other)
    np.testing.assert_array_equal(restored.mean, mine.mean)
    assert (restored.stamp != mine.stamp).any(), "another seed has other noise"


def test_an_odd_number_of_candidates_is_refused(es):
    with pytest.raises(ValueError, match="candidates: 3 are no pairs"):
        es.Config({**SECTION, "candidates": 3})


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"action_low": -1}, "action_low: no effect without continuous: true"),
        ({"action_size": [2, 3]}, "action_size: is the number of actions"),
        ({"continuous": True}, "action_low and action_high must both be finite"),
        ({"network": []}, "network and hidden_layers exclude each other"),
    ],
)
def test_what_does_not_fit_is_refused(es, keys, reason):
    with pytest.raises(ValueError, match=reason):
        es.Config({**SECTION, **keys})


def test_actions_may_be_numbers_of_the_plant(es):
    config = es.Config({**SECTION, "continuous": True, "action_low": 0, "action_high": 10})
    assert config.action_space()["type"] == "Box"
    assert config.units() != {}
