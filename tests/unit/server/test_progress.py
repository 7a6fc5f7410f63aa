"""The progress line of a training."""

import io

from relaax.server.parameter_server.progress import ProgressPrinter, StepRate, TrainingProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


SOME = TrainingProgress(
    global_t=12345, steps_per_s=3210.4, mean_return=97.25, episodes=100, checkpoints=2
)


def test_the_line_names_step_rate_return_and_checkpoints():
    assert str(SOME) == (
        "training: step 12,345 at 3,210/s | return 97.2 (100 episodes) | 2 checkpoints"
    )


def test_before_the_first_episode_there_is_no_return():
    assert "return - (0 episodes)" in str(TrainingProgress(0, 0.0, None, 0, 0))


def test_a_terminal_keeps_one_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    terminal = Terminal()
    printer = ProgressPrinter(terminal)
    printer.show(SOME)
    printer.show(SOME)
    printer.close(SOME)
    assert terminal.getvalue() == f"\r\x1b[K{SOME}" * 3 + "\n"


def test_a_narrow_terminal_gets_one_row_and_the_whole_line_at_the_end(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    printer = ProgressPrinter(terminal)
    printer.show(SOME)
    printer.close(SOME)
    assert terminal.getvalue() == f"\r\x1b[K{str(SOME)[:39]}\r\x1b[K{SOME}\n"


def test_a_file_gets_a_line_an_interval_and_the_last_one():
    file = io.StringIO()
    printer = ProgressPrinter(file, interval_s=3600)
    for _ in range(5):
        printer.show(SOME)
    printer.close(SOME)
    assert file.getvalue() == f"{SOME}\n" * 2


def test_the_rate_is_steps_over_seconds_since_the_last_update():
    times = iter([100.0, 102.0, 106.0])
    rate = StepRate(1000, clock=lambda: next(times))
    assert rate.update(1500) == 250
    assert rate.update(1500) == 0
