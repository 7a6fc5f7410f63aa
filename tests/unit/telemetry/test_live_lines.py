"""What processes say of themselves in one line, and what a group of them says."""

import io
import json
import os

import pytest

from relaax.telemetry.live_lines import (
    ASKED_BY,
    MARK,
    Figure,
    LiveLine,
    LiveLineWriter,
    StatePrinter,
    as_line,
    asked_interval_s,
    combined,
)

LINE = LiveLine(
    "learner",
    (
        Figure(8112, "updates"),
        Figure(120.5, "updates/s"),
        Figure(0.98, "updates per step"),
        Figure(25_000, "steps stored", of=100_000),
    ),
)
TEXT = (
    "learner: updates 8,112 | updates/s 120 | updates per step 0.98 | "
    "steps stored 25,000 of 100,000"
)


def test_a_line_names_its_group_and_each_figure():
    assert str(LINE) == TEXT


def test_amounts_of_a_group_are_added_up_and_ratios_averaged():
    other = LiveLine(
        "learner",
        (
            Figure(888, "updates"),
            Figure(0.5, "updates per step"),
            Figure(5_000, "steps stored", of=100_000),
        ),
    )
    assert str(combined([LINE, other])) == (
        "learner: updates 9,000 | updates/s 120 | updates per step 0.74 | "
        "steps stored 30,000 of 200,000"
    )


def test_a_line_is_written_once_an_interval_where_it_is_asked_for(monkeypatch):
    monkeypatch.setenv(ASKED_BY, "2")
    now, stream = [0.0], io.StringIO()
    writer = LiveLineWriter("replay", lambda: [Figure(now[0], "steps")], stream, lambda: now[0])
    for time in (0.0, 1.9, 2.0, 3.9, 4.0):
        now[0] = time
        writer.write_if_due()
    written = [line.removeprefix(MARK) for line in stream.getvalue().splitlines()]
    figures = [json.loads(line)["figures"] for line in written]
    assert figures == [[{"value": steps, "what": "steps", "of": None}] for steps in (2, 4)]


def test_where_it_is_not_asked_for_nothing_is_written(monkeypatch):
    monkeypatch.delenv(ASKED_BY, raising=False)
    stream = io.StringIO()
    writer = LiveLineWriter("replay", lambda: [Figure(1, "steps")], stream, lambda: 1e9)
    writer.write_if_due()
    assert stream.getvalue() == ""


@pytest.mark.parametrize("text", ["", "soon", "0", "-1", "nan", "inf"])
def test_an_interval_that_is_no_time_asks_for_nothing(text):
    assert asked_interval_s({ASKED_BY: text}) is None


@pytest.fixture(name="pipe")
def _pipe():
    """The two ends of a pipe."""
    reader, writer = os.pipe()
    with open(reader, "rb", buffering=0) as output, open(writer, "w", buffering=1) as stream:
        yield output, stream


def written_to(stream, monkeypatch):
    monkeypatch.setenv(ASKED_BY, "2")
    now = iter(range(0, 1_000_000, 10))
    return LiveLineWriter("replay", lambda: [Figure(1, "steps")], stream, lambda: next(now))


def test_a_pipe_that_is_not_read_does_not_stop_the_process(pipe, monkeypatch):
    output, stream = pipe
    writer = written_to(stream, monkeypatch)
    for _ in range(20_000):
        writer.write_if_due()
    assert set(output.read(1000).splitlines()[:-1]) == {
        as_line(LiveLine("replay", (Figure(1, "steps"),))).encode()
    }


def test_an_output_that_is_closed_does_not_end_the_process(pipe, monkeypatch):
    output, stream = pipe
    writer = written_to(stream, monkeypatch)
    output.close()
    writer.write_if_due()
    writer.write_if_due()
    with pytest.raises(BrokenPipeError):
        stream.close()  # what could not be written is still there


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _terminal_that_erases(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_that_cannot_erase_gets_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal()
    StatePrinter(terminal).show(LINE)
    assert terminal.getvalue() == f"{LINE}\n"


def test_a_terminal_keeps_one_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    terminal = Terminal()
    printer = StatePrinter(terminal)
    printer.show(LINE)
    printer.show(LINE)
    printer.close(LINE)
    assert terminal.getvalue() == f"\r\x1b[K{LINE}" * 3 + "\n"


def test_a_narrow_terminal_gets_one_row_and_the_whole_line_at_the_end(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    printer = StatePrinter(terminal)
    printer.show(LINE)
    printer.close(LINE)
    assert terminal.getvalue() == f"\r\x1b[K{str(LINE)[:39]}\r\x1b[K{LINE}\n"


def test_a_file_gets_a_line_an_interval_and_the_last_one():
    file = io.StringIO()
    printer = StatePrinter(file, interval_s=3600)
    assert printer.is_due()
    printer.show(LINE)
    assert not printer.is_due()
    printer.close(LINE)
    assert file.getvalue() == f"{LINE}\n" * 2


def test_relaax_train_gets_lines_that_it_can_read(monkeypatch):
    monkeypatch.setenv(ASKED_BY, "2")
    file = io.StringIO()
    StatePrinter(file).show(LINE)
    assert file.getvalue() == f"{as_line(LINE)}\n"
