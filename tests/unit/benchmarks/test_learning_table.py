"""The table of learning.py: both programs at what all their trainings have reached."""

from dataclasses import replace

from curves import Curve, Point
from learning_table import EVALUATED, HEADER, table


def curve(program, seed, rate, mean_returns, environment="pendulum"):
    """A training of 100 steps with four points, a quarter of it each."""
    places = [25, 50, 75, 100]
    points = [
        Point(steps, steps / rate, mean) for steps, mean in zip(places, mean_returns, strict=True)
    ]
    return Curve(environment, program, seed, 100, 100 / rate, points)


def cells(text):
    """The rows below the header, each a dict by column."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    assert tuple(rows[0][: len(HEADER)]) == HEADER
    return [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def test_seeds_are_averaged_and_their_range_is_shown():
    curves = [
        curve("RELAAX", 1, 10, [-400, -300, -200, -100]),
        curve("RELAAX", 2, 10, [-800, -300, -200, -300]),
    ]
    (row,) = cells(table(curves))
    assert row["seeds"] == "2"
    assert row["return after a quarter of the same steps"] == "-600 (-800 to -400) at 25"
    assert row["after the same steps"] == "-200 (-300 to -100) at 100"


def test_programs_are_compared_at_the_seconds_that_both_have_reached():
    fast = curve("RELAAX", 1, 10, [100, 200, 300, 400])
    slow = curve("PPO (SB3)", 1, 5, [150, 250, 350, 450])
    ours, theirs = cells(table([fast, slow]))
    assert ours["after the same seconds"] == "400 (400 to 400) at 10 s"
    assert theirs["after the same seconds"] == "250 (250 to 250) at 10 s"
    assert (ours["seconds"], theirs["seconds"]) == ("10", "20")


def test_what_a_longer_training_came_to_is_shown_beside_the_comparison():
    whole = curve("RELAAX", 1, 10, [100, 200, 300, 400])
    cut = Curve("pendulum", "PPO (SB3)", 1, 60, 5.0, [Point(60, 5.0, 140)])
    ours, theirs = cells(table([whole, cut]))
    assert ours["after the same seconds"] == "200 (200 to 200) at 5 s"
    assert ours["at its own end"] == "400 (400 to 400)"
    assert theirs["at its own end"] == "140 (140 to 140)"


def test_programs_are_compared_at_the_steps_that_both_have_reached():
    whole = curve("RELAAX", 1, 10, [100, 200, 300, 400])
    cut = Curve("pendulum", "PPO (SB3)", 1, 60, 10.0, [Point(30, 5.0, 120), Point(60, 10.0, 140)])
    ours, theirs = cells(table([whole, cut]))
    assert ours["after the same steps"] == "200 (200 to 200) at 60"
    assert theirs["after the same steps"] == "140 (140 to 140) at 60"


def test_a_training_without_an_episode_yet_has_no_return():
    late = Curve("pendulum", "RELAAX", 1, 100, 10.0, [Point(90, 9.0, 5.5)])
    (row,) = cells(table([late]))
    assert row["return after a quarter of the same steps"].startswith("nan")
    assert row["after the same steps"] == "5.50 (5.50 to 5.50) at 100"


def test_each_environment_is_compared_for_itself():
    curves = [
        curve("RELAAX", 1, 10, [1, 2, 3, 4]),
        curve("RELAAX", 1, 1, [10, 20, 30, 40], environment="cartpole"),
    ]
    names = [row["environment"] for row in cells(table(curves))]
    assert names == ["pendulum", "cartpole"]


def test_what_was_learnt_is_shown_as_it_was_evaluated():
    seeds = [curve("RELAAX", seed, 10, [-400, -300, -200, -180]) for seed in (1, 2)]
    evaluated = [replace(seeds[0], evaluation=-140.0), replace(seeds[1], evaluation=-160.0)]
    (row,) = cells(table(evaluated))
    assert row[EVALUATED] == "-150 (-160 to -140)"
    assert row["at its own end"] == "-180 (-180 to -180)"


def test_a_row_without_an_evaluation_beside_one_with_it_is_left_empty():
    evaluated = replace(curve("RELAAX", 1, 10, [1, 2, 3, 4]), evaluation=5.0)
    other = curve("RELAAX", 1, 10, [1, 2, 3, 4], environment="cartpole")
    assert [row[EVALUATED] for row in cells(table([evaluated, other]))] == [
        "5.00 (5.00 to 5.00)",
        "",
    ]


def test_without_an_evaluation_there_is_no_column_for_it():
    (row,) = cells(table([curve("RELAAX", 1, 10, [1, 2, 3, 4])]))
    assert EVALUATED not in row
