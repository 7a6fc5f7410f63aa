"""The progress line of a training."""

from dataclasses import replace

import pytest

from relaax.parameters.process.progress import StepRate, TrainingProgress

SOME = TrainingProgress(
    global_t=12345, steps_per_s=3210.4, mean_return=97.25, episodes=100, checkpoints=2
)


def test_the_line_names_step_rate_return_and_checkpoints():
    assert str(SOME) == (
        "training: step 12,345 at 3,210/s | return 97.2 (100 episodes) | "
        "0 environments on 0 connections | 2 checkpoints"
    )


def test_one_of_a_kind_is_said_in_the_singular():
    progress = replace(SOME, episodes=1, checkpoints=1, environments=1, connections=1)
    said = "(1 episode) | 1 environment on 1 connection | 1 checkpoint"
    assert str(progress).endswith(said)


#: All that can be known of a training.
FULL = TrainingProgress(
    global_t=163904, steps_per_s=3412, mean_return=437.2, episodes=100, checkpoints=0,
    last_t=500_000, goal_return=475.0, environments=8, connections=2, seconds_left=99,
)  # fmt: skip


def test_the_line_shows_the_progress_against_the_goal():
    assert str(FULL) == (
        "training: step 163,904 of 500,000 at 3,412/s | return 437.2 of 475 (100 episodes) | "
        "8 environments on 2 connections | 0 checkpoints | at most 0:01:39 left"
    )


def test_how_many_episodes_are_needed_is_said_until_they_are_there():
    shown = str(replace(FULL, episodes=14, needed_episodes=100))
    assert " | return 437.2 of 475 (14 of 100 episodes) | 8 env" in shown


def test_the_return_of_evaluations_is_shown_beside_that_of_the_training():
    shown = str(replace(FULL, mean_evaluation=480.04, evaluations=20))
    assert " | return 437.2 of 475 (100 episodes) | evaluated 480.0 (20 episodes) | 8 env" in shown


@pytest.mark.parametrize(
    ("mean", "goal", "shown"),
    [(0.846, 0.85, "0.85"), (0.8, 0.85, "0.80"), (474.96, 475.0, "475.0")],
)
def test_a_mean_return_has_the_decimals_of_its_goal(mean, goal, shown):
    said = replace(FULL, mean_return=mean, goal_return=goal).returns()
    assert said == f"return {shown} of {goal:g}"


def test_without_a_goal_return_the_time_left_is_no_limit():
    assert str(replace(FULL, goal_return=None)).endswith(" | 0:01:39 left")


def test_the_part_that_is_done_is_known_with_the_last_step():
    assert FULL.fraction() == pytest.approx(0.327808)
    assert replace(FULL, global_t=600_000).fraction() == 1
    assert SOME.fraction() is None


def test_before_the_first_episode_there_is_no_return():
    assert "return - (0 episodes)" in str(TrainingProgress(0, 0.0, None, 0, 0))


def test_the_rate_is_measured_anew_where_a_training_goes_back():
    now = [0.0]
    rate = StepRate(0, lambda: now[0])
    now[0] += 2
    assert rate.update(1000) == 500
    now[0] += 2
    assert rate.update(600) == 0
    assert rate.seconds_for(1000) is None
    now[0] += 2
    assert rate.update(1000) == 200
    assert rate.seconds_for(1000) == 5


def test_the_rate_is_steps_over_seconds_since_the_last_update():
    times = iter([100.0, 102.0, 106.0])
    rate = StepRate(1000, clock=lambda: next(times))
    assert rate.update(1500) == 250
    assert rate.update(1500) == 0


def test_the_time_left_follows_the_rate_slowly():
    times = iter([0.0, 1.0, 2.0])
    rate = StepRate(0, clock=lambda: next(times))
    assert rate.seconds_for(100) is None
    rate.update(10)
    assert rate.seconds_for(100) == 10
    rate.update(30)  # 20 in this second: 0.8 * 10 + 0.2 * 20 = 12
    assert rate.seconds_for(120) == 10
    assert rate.seconds_for(-5) == 0
