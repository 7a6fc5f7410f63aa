"""What follows the KL divergence: Schulman et al. 2017, section 4, with Surreal's numbers."""

import pytest

TARGET = 0.01


@pytest.fixture(name="adaptation", scope="module")
def _adaptation(ppo_module):
    return ppo_module("adaptation")


def moved(adaptation, kl, **limits):
    every = {"clip_range": None, "penalty_range": None, "learning_rate_range": None, **limits}
    knobs = adaptation.Knobs(clip=0.2, penalty=1.0, learning_rate=1e-3)
    return adaptation.Adaptation(TARGET, **every).after(knobs, kl)


@pytest.mark.parametrize(
    ("kl", "penalty"), [(0.021, 1.5), (0.02, 1.0), (0.01, 1.0), (0.005, 1.0), (0.0049, 1 / 1.5)]
)
def test_the_penalty_grows_beyond_twice_the_target_and_shrinks_below_half_of_it(
    adaptation, kl, penalty
):
    assert moved(adaptation, kl, penalty_range=(0.1, 10)).penalty == pytest.approx(penalty)


@pytest.mark.parametrize(("kl", "clip"), [(0.03, 0.2 / 1.2), (0.01, 0.2), (0.001, 0.24)])
def test_the_clip_does_the_opposite(adaptation, kl, clip):
    assert moved(adaptation, kl, clip_range=(0.05, 0.3)).clip == pytest.approx(clip)


@pytest.mark.parametrize(("kl", "rate"), [(0.03, 1e-3 / 1.5), (0.01, 1e-3), (0.001, 1.5e-3)])
def test_so_does_the_learning_rate(adaptation, kl, rate):
    found = moved(adaptation, kl, learning_rate_range=(1e-5, 1e-2))
    assert found.learning_rate == pytest.approx(rate)


def test_nothing_leaves_its_limits(adaptation):
    limits = {
        "clip_range": (0.19, 0.3),
        "penalty_range": (0.1, 1.2),
        "learning_rate_range": (9e-4, 1e-2),
    }
    found = moved(adaptation, 1.0, **limits)
    assert (found.clip, found.penalty, found.learning_rate) == (0.19, 1.2, 9e-4)


def test_what_has_no_limits_stays_as_it_is(adaptation):
    assert moved(adaptation, 1.0) == adaptation.Knobs(0.2, 1.0, 1e-3)
