"""Evolution strategies beside numpy: ranks, mirrored candidates, and the step of their mean."""

import importlib

import numpy as np
import pytest
from clock import Clock
from population_episodes import episode
from processes import REPOSITORY

from relaax.algorithm_base import Version
from relaax.assembly.parts import Home
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.population import learner as learner_module
from relaax.learning.population.learner import centred_ranks

SECTION = {
    "state_size": [3], "action_size": 2, "hidden_layers": [4], "candidates": 4, "sigma": 0.5,
    "learning_rate": 0.1, "weight_decay": 0, "seed": 7,
}  # fmt: skip


@pytest.fixture(name="es", scope="module")
def _es():
    return load_algorithm(REPOSITORY / "algorithms" / "es").module


def learner_of(es, **keys):
    config = es.Config({**SECTION, **keys})
    return es.Builder(config).learner(Home(1, np.random.default_rng(0), None))


def publish(learner, version):
    """Publish what there is, as its process does; return the values by policy."""
    values = dict(learner.values())
    for policy in values:
        learner.published(policy, Version(version))
    return values


def test_ranks_are_centred_and_equal_scores_share_theirs():
    assert centred_ranks([5.0, -1.0, 20.0]).tolist() == [0, -0.5, 0.5]
    assert centred_ranks([3.0, 3.0, 1.0]).tolist() == [0.25, 0.25, -0.5]
    assert centred_ranks([2.0]).tolist() == [-0.5]


def test_workers_make_the_candidates_in_mirrored_pairs_around_the_mean(es):
    variant_of = es.Builder(es.Config(SECTION)).policy(1).variant_of
    mean = np.arange(26, dtype=np.float32)
    one, mirrored, other = (variant_of(f"candidate-{place}", mean, 3) for place in range(3))
    np.testing.assert_allclose(one - mean, mean - mirrored, atol=1e-5)
    assert np.abs(other - one).min() > 0
    later = variant_of("candidate-0", mean, 4)
    assert (later != one).any(), "each version has noise of its own"
    np.testing.assert_array_equal(variant_of("candidate-0", mean, 3), one)
    assert np.std(one - mean) == pytest.approx(0.5, rel=0.5)


def test_the_mean_goes_up_the_gradient_that_ranks_estimate(es):
    learner = learner_of(es)
    mean = publish(learner, 5)["default"]
    scores = [3.0, 9.0, -2.0, 7.0]
    steps = [
        step
        for place, score in enumerate(scores)
        for step in learner.steps({"episodes": episode(f"candidate-{place}", 5, score)})
    ]
    assert [step.updates for step in steps] == [0, 0, 0, 1]
    assert (steps[-1].terms["mean score"], steps[-1].terms["best score"]) == (4.25, 9.0)
    draws = (np.random.default_rng([7, 5, pair]) for pair in range(2))
    noise = [draw.standard_normal(mean.size, np.float32) for draw in draws]
    ranks = np.array([-1 / 6, 1 / 2, -1 / 2, 1 / 6])
    gradient = ((ranks[0] - ranks[1]) * noise[0] + (ranks[2] - ranks[3]) * noise[1]) / (4 * 0.5)
    assert steps[-1].terms["gradient norm"] == pytest.approx(np.linalg.norm(gradient), rel=1e-4)
    # The first step of Adam is as long as its rate, along the sign of the gradient.
    moved = learner.values()["default"] - mean
    np.testing.assert_allclose(moved, 0.1 * np.sign(gradient), rtol=1e-3)


def test_it_climbs_to_the_optimum_of_a_quadratic(es):
    learner = learner_of(es, candidates=32, sigma=0.1, learning_rate=0.05)
    variant_of = (
        es.Builder(es.Config({**SECTION, "candidates": 32, "sigma": 0.1})).policy(1).variant_of
    )
    goal = np.linspace(-1, 1, learner.values()["default"].size)
    distances = []
    for version in range(150):
        mean = publish(learner, version)["default"]
        distances.append(np.linalg.norm(mean - goal))
        for place in range(32):
            name = f"candidate-{place}"
            score = -np.square(variant_of(name, mean, version) - goal).sum()
            list(learner.steps({"episodes": episode(name, version, score)}))
    assert distances[-1] < 0.2 * distances[0]


def test_episodes_of_another_version_or_of_a_candidate_that_has_its_score_do_not_count(es):
    learner = learner_of(es, candidates=2)
    publish(learner, 5)
    for name, version in [("candidate-0", 4), ("candidate-0", 5), ("candidate-0", 5)]:
        (step,) = learner.steps({"episodes": episode(name, version, 1.0)})
        assert step.updates == 0
    (step,) = learner.steps({"episodes": episode("candidate-1", 5, 3.0)})
    assert (step.updates, step.terms["mean score"]) == (1, 2.0)


def test_a_mean_that_the_parameter_server_has_lost_is_published_again(es, monkeypatch):
    """Episodes of earlier versions alone come; those of both publications are scored, apart."""
    clock = Clock(0.0)
    monkeypatch.setattr(learner_module, "monotonic", clock)
    learner = learner_of(es, candidates=2)
    mean = publish(learner, 5)["default"]
    list(learner.steps({"episodes": episode("candidate-0", 5, 1.0)}))
    for seconds in (59.0, 2.0):
        assert learner.values() == {}
        clock.now += seconds
        list(learner.steps({"episodes": episode("candidate-1", 3, 1.0)}))
    np.testing.assert_array_equal(publish(learner, 6)["default"], mean)
    (step,) = learner.steps({"episodes": episode("candidate-1", 6, 2.0)})
    assert step.updates == 0
    (step,) = learner.steps({"episodes": episode("candidate-1", 5, 3.0)})
    assert (step.updates, step.terms["mean score"]) == (1, 2.0)


def test_it_goes_on_from_its_state(es):
    learner, other = learner_of(es), learner_of(es, seed=8)
    publish(learner, 1)
    for place in range(4):
        list(learner.steps({"episodes": episode(f"candidate-{place}", 1, place)}))
    state = {name: array.copy() for name, array in learner.state().items()}
    other.restore(state)
    for name, array in other.state().items():
        np.testing.assert_array_equal(array, state[name])
    np.testing.assert_array_equal(other.values()["default"], learner.values()["default"])


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
    assert importlib.import_module(f"{es.__name__}.method").noise_of(1, 2, 3, 4).shape == (4,)
