import io
import json
import statistics

from clock import Clock

from relaax.client.run_progress import ProgressDisplay, RunProgress
from relaax.client.simulator import EpisodeSummary
from relaax.telemetry.live_lines import ASKED_BY, MARK


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_counts_and_averages_the_last_hundred_episodes() -> None:
    progress = RunProgress(4)
    assert str(progress.line(0)) == "environments: connected 0 of 4 | episodes 0 | steps/s 0"
    progress.connected = 3
    for episode_return in [1000.0] + [1.0, 2.0] * 50:
        progress.on_episode(EpisodeSummary(episode_return, 10, 0.5))
    assert str(progress.line(12.6)) == (
        "environments: connected 3 of 4 | episodes 101 | steps/s 13 | mean return 1.50"
    )


def test_elsewhere_than_on_a_terminal_a_line_comes_soon_and_then_every_ten_seconds() -> None:
    clock, stream, progress = Clock(), io.StringIO(), RunProgress(1)
    display = ProgressDisplay(progress, stream, clock)
    clock.now += 1.5
    display.refresh()
    assert stream.getvalue() == ""
    clock.now += 0.5
    progress.steps = 10
    display.refresh()
    clock.now += 9
    display.refresh()
    clock.now += 1
    progress.steps = 210
    display.refresh()
    first, second = stream.getvalue().splitlines()
    assert first.endswith(" steps/s 5")
    assert second.endswith(" steps/s 20")


def test_on_a_terminal_the_line_is_replaced_until_the_end(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    clock, stream = Clock(), Terminal()
    display = ProgressDisplay(RunProgress(1), stream, clock)
    for _ in range(2):
        clock.now += 1
        display.refresh()
    display.finish()
    shown = stream.getvalue()
    assert shown.count("environments: connected 0 of 1") == 3
    assert shown.count("\n") == 1
    assert shown.endswith("\n")


def test_relaax_train_gets_a_live_line_as_often_as_it_asks(monkeypatch) -> None:
    monkeypatch.setenv(ASKED_BY, "2")
    clock, stream, progress = Clock(), io.StringIO(), RunProgress(4)
    progress.connected = 3
    display = ProgressDisplay(progress, stream, clock)
    for steps in (100, 150):
        clock.now += 2
        progress.steps = steps
        display.refresh()
        display.refresh()
        progress.on_episode(EpisodeSummary(9.5, 10, 0.5))
    lines = [json.loads(line.removeprefix(MARK)) for line in stream.getvalue().splitlines()]
    shown = [{each["what"]: each["value"] for each in line["figures"]} for line in lines]
    assert shown == [
        {"connected": 3, "episodes": 0, "steps/s": 50},
        {"connected": 3, "episodes": 1, "steps/s": 25, "mean return": 9.5},
    ]


def test_the_summary_is_of_all_episodes() -> None:
    progress = RunProgress(1)
    returns = [1e9 + value for value in range(150)]
    for episode_return in returns:
        progress.on_episode(EpisodeSummary(episode_return, 10, 0.5))
    assert progress.summary() == (
        f"return of 150 episodes: mean {statistics.fmean(returns):.2f}, standard deviation "
        f"{statistics.pstdev(returns):.2f}, smallest 1000000000.00, largest 1000000149.00"
    )
