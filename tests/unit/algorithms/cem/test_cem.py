"""The cross-entropy method beside numpy: elites, deviations, and noise that falls to 0."""

import numpy as np
import pytest
from population_episodes import episode
from processes import REPOSITORY

from relaax.algorithm_base import Version
from relaax.assembly.parts import Home
from relaax.configuration.algorithm_loader import load_algorithm

SECTION = {
    "state_size": [3], "action_size": 2, "candidates": 10, "elite_fraction": 0.3, "initial_std": 2.0
}  # fmt: skip


@pytest.fixture(name="cem", scope="module")
def _cem():
    return load_algorithm(REPOSITORY / "algorithms" / "cem").module


def learner_of(cem, seed=0, **keys):
    config = cem.Config({**SECTION, **keys})
    return cem.Builder(config).learner(Home(1, np.random.default_rng(seed), None))


def play(cem, learner, score_of, **keys):
    """Publish a generation, and score its candidates; return these [N, size] and the step."""
    (vector,) = learner.values().values()
    learner.published("default", Version(1))
    assert learner.values() == {}, "what is published is published once"
    parts = cem.Builder(cem.Config({**SECTION, **keys})).policy(1)
    parts.imprint.require(vector)
    candidates = []
    for place in range(keys.get("candidates", SECTION["candidates"])):
        name = f"candidate-{place}"
        candidates.append(parts.variant_of(name, vector))
        batch = episode(name, vector[parts.imprint.stamp], score_of(candidates[-1]))
        (step,) = learner.steps({"episodes": batch})
    return vector[: parts.imprint.stamp.start], np.stack(candidates), step


def test_the_next_candidates_are_drawn_like_the_elites(cem):
    keys = {"candidates": 2000, "elite_fraction": 0.25}
    learner = learner_of(cem, **keys)
    mean, first, step = play(cem, learner, lambda vector: float(vector[0]), **keys)
    assert not mean.any()
    np.testing.assert_allclose(first.std(axis=0), 2.0, rtol=0.1)
    elites = first[np.argsort(-first[:, 0])[:500]]
    assert step.terms["elites' score"] == pytest.approx(elites[:, 0].mean(), rel=1e-4)
    assert step.terms["std"] == pytest.approx(elites.std(axis=0).mean(), rel=1e-4)
    mean, second, _ = play(cem, learner, lambda vector: float(vector[0]), **keys)
    np.testing.assert_allclose(mean, elites.mean(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(second.mean(axis=0), mean, atol=0.2)
    np.testing.assert_allclose(second.std(axis=0), elites.std(axis=0), rtol=0.1)


def test_the_noise_beside_their_deviation_falls_to_0(cem):
    keys = {"candidates": 1000, "elite_fraction": 0.01, "extra_std": 1.5}
    keys["std_decay_generations"] = 3
    learner, std = learner_of(cem, **keys), 2.0
    for left in [1, 2 / 3, 1 / 3, 0, 0]:
        _, candidates, _ = play(cem, learner, lambda vector: float(vector[0]), **keys)
        expected = np.sqrt(std**2 + 1.5**2 * left)
        np.testing.assert_allclose(candidates.std(axis=0) / expected, 1.0, atol=0.15)
        std = candidates[np.argsort(-candidates[:, 0])[:10]].std(axis=0)


def test_it_finds_the_optimum_of_a_quadratic(cem):
    learner = learner_of(cem, candidates=60)
    goal = np.linspace(-1, 1, cem.Config(SECTION).network.manifest.size)
    for _ in range(25):
        mean, *_ = play(
            cem, learner, lambda vector: -float(np.square(vector - goal).sum()), candidates=60
        )
    np.testing.assert_allclose(mean, goal, atol=0.2)


def test_it_goes_on_from_its_state(cem):
    learner, other = learner_of(cem), learner_of(cem, seed=1)
    play(cem, learner, lambda vector: float(vector[0]))
    other.restore(learner.state())
    size = cem.Config(SECTION).network.manifest.size
    mine, restored = (each.values()["default"][:size] for each in (learner, other))
    np.testing.assert_array_equal(restored, mine)
    assert other.generation == 1
    assert other.state()["std"].mean() < 2


def test_the_search_begins_around_a_linear_policy_of_zeros(cem):
    config = cem.Config(SECTION)
    assert not config.initial().any()
    assert config.network.manifest.size == 3 * 2 + 2


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"candidates": 4}, "elite_fraction: 0.3 of 4 candidates is one elite"),
        ({"elite_fraction": 1.0}, "elite_fraction"),
        ({"candidates": 1}, "candidates"),
        ({"std_decay_generations": 5}, "std_decay_generations: no effect without extra_std"),
        ({"reward_scale": 2.0}, "reward_scale: no effect without clip_rewards: true"),
        ({"rewards_gamma": 0.9}, "rewards_gamma"),
    ],
)
def test_what_has_no_effect_or_stands_still_is_refused(cem, keys, reason):
    with pytest.raises(ValueError, match=reason):
        cem.Config({**SECTION, **keys})
