"""The training's progress as rows of a terminal."""

import io
import re
from dataclasses import replace

import pytest
from rich.text import Text
from terminal_screen import on_screen

from relaax.launcher.live_printer import ProgressView, state_in
from relaax.parameters.process.progress import TrainingProgress
from relaax.telemetry.live_lines import MARK, Figure, LiveLine, as_line

SOME = TrainingProgress(
    global_t=163_904, steps_per_s=3412, mean_return=437.2, episodes=100, checkpoints=0,
    last_t=500_000, goal_return=475.0, environments=8, connections=2, seconds_left=99,
)  # fmt: skip


@pytest.fixture(name="resize")
def _resize(monkeypatch):
    def resize(columns, rows=24):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("LINES", str(rows))

    return resize


def as_sent(text):
    """What a terminal gets of a text that is written to it."""
    return text.replace("\n", "\r\n")


def view():
    return ProgressView(io.StringIO())


@pytest.mark.parametrize("rows", [1, 5, 6, 24])
def test_every_row_is_shorter_than_the_terminal(resize, rows):
    for columns in range(1, 200):
        resize(columns, rows)
        drawn = view().draw({"ps": SOME}).splitlines()
        assert all(Text.from_ansi(row).cell_len < columns for row in drawn), columns
        assert len(drawn) <= (2 if rows >= 6 else 1)


def test_80_columns_have_room_for_how_many_episodes_a_goal_needs(resize):
    resize(80)
    drawn = view().draw({"ps": replace(SOME, episodes=14, needed_episodes=100)})
    assert Text.from_ansi(drawn.splitlines()[-1]).plain.rstrip() == (
        "step 163,904 of 500,000 | return 437.2 of 475 (14 of 100) | 8 environments"
    )


def test_what_is_drawn_is_erased_and_the_log_stays(resize):
    resize(100)
    shown = view()
    drawn = as_sent("a log\n" + shown.draw({"ps": SOME}))
    assert len(on_screen(drawn)) == 3
    assert on_screen(drawn + shown.erase()) == ["a log"]
    assert shown.erase() == ""


def test_rows_that_a_narrower_terminal_has_broken_are_erased(resize):
    resize(100)
    shown = view()
    drawn = as_sent("a log\n" + shown.draw({"ps": SOME}))
    resize(60)
    assert len(on_screen(drawn, columns=60)) == 5
    broken = "\r\n".join(on_screen(drawn, columns=60))
    assert on_screen(broken + shown.erase()) == ["a log"]


GROUPS = [
    LiveLine("learner", (Figure(1234, "updates"), Figure(25, "steps stored", of=100))),
    LiveLine("environments", (Figure(3, "connected", of=4),)),
]


def test_groups_of_processes_have_rows_below(resize):
    resize(80)
    _, _, *rows = on_screen(as_sent(view().draw({"ps": SOME}, GROUPS)))
    assert rows == [
        "learner      updates 1,234 | steps stored 25 of 100",
        "environments connected 3 of 4",
    ]


def test_before_the_first_progress_groups_are_shown_alone(resize):
    resize(80)
    shown = on_screen(as_sent(view().draw({}, GROUPS)))
    assert [row.split()[0] for row in shown] == ["learner", "environments"]


@pytest.mark.parametrize(("rows", "groups"), [(24, 2), (8, 2), (7, 1), (6, 0), (5, 0), (1, 0)])
def test_groups_take_no_rows_that_the_log_needs(resize, rows, groups):
    for columns in (50, 60, 120):
        resize(columns, rows)
        drawn = view().draw({"ps": SOME}, GROUPS).splitlines()
        assert len(drawn) == (2 + groups if rows >= 6 else 1)
        assert all(Text.from_ansi(row).cell_len < columns for row in drawn)


def test_groups_are_erased_with_the_rest(resize):
    resize(100)
    shown = view()
    drawn = as_sent("a log\n" + shown.draw({"ps": SOME}, GROUPS))
    assert on_screen(drawn + shown.erase()) == ["a log"]


def test_a_training_without_a_last_step_is_drawn_too(resize):
    resize(80)
    drawn = view().draw({"ps": TrainingProgress(7, 0, None, 0, 0)})
    bar, figures = on_screen(as_sent(drawn))
    assert "%" not in bar
    assert figures == "step 7 | return - | 0 environments on 0 connections"


def test_a_bar_without_an_end_is_not_one_that_has_not_begun(resize, monkeypatch):
    """It is of many colours, where the other one is of one."""
    resize(80)
    monkeypatch.setenv("FORCE_COLOR", "1")
    without_end = TrainingProgress(7, 0, None, 0, 0)
    drawn = [
        view().draw({"ps": each})
        for each in (without_end, replace(without_end, last_t=9, global_t=0))
    ]
    colours = [len(set(re.findall(r"\x1b\[[0-9;]*m", rows))) for rows in drawn]
    assert colours[0] > colours[1]


def test_each_of_several_trainings_has_a_row_at_its_place(resize):
    resize(80)
    trainings = {"b-ps": replace(SOME, mean_return=9.5, goal_return=None), "a-ps": SOME}
    first, second, group = on_screen(as_sent(view().draw(trainings, GROUPS[:1])))
    assert (first.split()[0], second.split()[0], group.split()[0]) == ("a-ps", "b-ps", "learner")
    assert first.endswith("33%  3,412/s  return 437.2 of 475")
    assert second.endswith("33%  3,412/s  return 9.5")


@pytest.mark.parametrize("rows", [6, 10, 24])
def test_many_trainings_leave_rows_to_the_log(resize, rows):
    for columns in (50, 60, 120):
        resize(columns, rows)
        waits = replace(SOME, standstill="no step for 30 s: no environment has connected")
        trainings = {f"policy_{number}-ps": waits for number in range(8)}
        drawn = view().draw(trainings, GROUPS).splitlines()
        assert len(drawn) == min(rows - 4, 18)
        assert all(Text.from_ansi(row).cell_len < columns for row in drawn)


def test_where_output_has_no_unicode_the_bar_has_none():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert ProgressView(stream).draw({"ps": SOME}).isascii()


def test_what_evaluations_come_to_is_shown_among_the_figures(resize):
    resize(100)
    drawn = view().draw({"ps": replace(SOME, mean_evaluation=481.9, evaluations=20)})
    assert "return 437.2 of 475 | evaluated 481.9 | 8 environments" in drawn


@pytest.mark.parametrize("state", [SOME, replace(SOME, mean_return=float("inf")), *GROUPS])
def test_a_state_is_read_from_its_line(state):
    assert state_in(as_line(state)) == state


@pytest.mark.parametrize(
    "line", ["", str(SOME), MARK, f"{MARK}{{}}", f'{MARK}{{"group": "learner"}}']
)
def test_other_lines_are_no_state(line):
    assert state_in(line) is None
