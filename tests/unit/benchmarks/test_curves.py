"""Curves of trainings: what the comparison with other programs is computed from."""

import itertools
import json
import math
from dataclasses import asdict, replace

import pytest
from curves import EPISODES, MOST_POINTS, Curve, Episode, Point, curve_of, points_of


def curve(*points, steps=100, seconds=10.0):
    return Curve("pendulum", "RELAAX", 1, steps, seconds, [Point(*point) for point in points])


def test_a_point_is_the_mean_of_the_episodes_so_far():
    episodes = [Episode(10, 1.0, 4.0), Episode(20, 2.0, 8.0)]
    assert points_of(episodes) == [Point(10, 1.0, 4.0), Point(20, 2.0, 6.0)]


def test_only_the_latest_episodes_count():
    old = [Episode(step, step / 10, -1000.0) for step in range(EPISODES)]
    new = [Episode(1000 + step, 100.0 + step, 7.0) for step in range(EPISODES)]
    assert points_of(old + new)[-1] == Point(1000 + EPISODES - 1, 100.0 + EPISODES - 1, 7.0)


def test_fewer_episodes_count_where_a_training_has_few():
    episodes = [Episode(step, float(step), step) for step in range(30)]
    assert points_of(episodes, 10)[-1].mean_return == 24.5


@pytest.mark.parametrize("episodes", [MOST_POINTS, MOST_POINTS + 1, 10 * MOST_POINTS + 3])
def test_a_long_training_keeps_some_points_and_the_last_one(episodes):
    points = points_of([Episode(step, float(step), 0.0) for step in range(episodes)])
    assert MOST_POINTS / 2 < len(points) <= MOST_POINTS
    assert points[-1].steps == episodes - 1
    strides = {later.steps - sooner.steps for sooner, later in itertools.pairwise(points)}
    assert len(strides) == 1


@pytest.mark.parametrize(("steps", "expected"), [(10, -5.0), (19.9, -5.0), (20, 3.0), (1000, 3.0)])
def test_a_return_is_that_of_the_last_point_before_so_many_steps(steps, expected):
    assert curve((10, 1.0, -5.0), (20, 2.0, 3.0)).at_steps(steps) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(1.0, -5.0), (1.9, -5.0), (2.5, 3.0)])
def test_a_return_is_that_of_the_last_point_before_so_many_seconds(seconds, expected):
    assert curve((10, 1.0, -5.0), (20, 2.0, 3.0)).at_seconds(seconds) == expected


def test_before_the_first_episode_has_ended_there_is_no_return():
    assert math.isnan(curve((10, 1.0, -5.0)).at_steps(9))
    assert math.isnan(curve((10, 1.0, -5.0)).at_seconds(0.5))


@pytest.mark.parametrize("evaluation", [None, -150.0])
def test_a_curve_comes_back_from_json_as_it_was(evaluation):
    before = replace(curve((10, 1.0, -5.0), (20, 2.0, 3.0)), evaluation=evaluation)
    assert curve_of(json.loads(json.dumps(asdict(before)))) == before


def test_a_curve_that_was_written_before_there_were_evaluations_is_read():
    row = asdict(curve((10, 1.0, -5.0)))
    del row["evaluation"]
    assert curve_of(row).evaluation is None
