"""What a child process does with its task, done in this one."""

import logging
import signal
import time
from multiprocessing import Pipe, RawValue

import pytest
from processes import wait_for

from relaax.client.child_process import END, Memory, run_task
from relaax.client.restarts import EnvironmentHangs, FailedTooOften
from relaax.client.simulator import EpisodeSummary, RunOutcome, RunResult
from relaax.errors import ProtocolError

FINISHED = RunResult(RunOutcome.FINISHED, "1 episodes are over")


@pytest.fixture(autouse=True)
def _as_before():
    """Give this process its signals and its log back."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    log = logging.getLogger("relaax.client")
    level = log.level
    yield
    log.setLevel(level)
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def memory(timeout_s=None, restarts=0, episodes=0):
    return Memory(RawValue("Q", 0), RawValue("d", 0.0), timeout_s, restarts, episodes)


def events_of(task, index=0, **shared):
    """What the parent gets, and the steps that it reads."""
    ours, theirs = Pipe(duplex=False)
    shared = memory(**shared)
    with ours:
        with theirs:
            run_task(task, index, theirs, shared)
        events = []
        while ours.poll():
            try:
                events.append(ours.recv())
            except EOFError:
                break
    return events, shared.steps.value


def test_events_are_reported_in_their_order_and_the_result_last():
    summary = EpisodeSummary(1.5, 10, 0.25)

    def task(index, report):
        report.on_connected()
        report.on_step()
        report.on_step(3)
        report.on_episode(summary)
        report.on_disconnected()
        return RunResult(RunOutcome.FINISHED, f"process {index}")

    events, steps = events_of(task, index=7)
    assert events == [
        ("on_connected", ()),
        ("on_episode", (summary,)),
        ("on_disconnected", ()),
        (END, (RunResult(RunOutcome.FINISHED, "process 7"),)),
    ]
    assert steps == 4


def test_an_error_of_relaax_is_its_message():
    def task(index, report):
        raise ProtocolError("the action does not fit")

    events, _ = events_of(task)
    assert events == [(END, (RunResult(RunOutcome.FAILED, "the action does not fit"),))]


def test_any_other_error_is_named_and_its_traceback_printed(capsys):
    def task(index, report):
        raise KeyError("speed")

    events, _ = events_of(task)
    assert events == [(END, (RunResult(RunOutcome.FAULT, "KeyError: 'speed'"),))]
    assert "Traceback" in capsys.readouterr().err


def test_only_the_time_between_a_begin_and_its_return_counts_as_that_of_environments():
    clock = time.monotonic
    found = []

    def task(index, report):
        for _ in range(2):
            earliest = clock()
            report.environment_begins()
            began = clock()
            wait_for(lambda began=began: clock() > began, "the next moment")
            ended = clock()
            report.environment_returned()
            report.environment_returned()
            found.append((ended - began, report.environment_s, clock() - earliest))
        return FINISHED

    events_of(task)
    (least, first, most), (further_least, both, further_most) = found
    assert least <= first <= most
    assert further_least <= both - first <= further_most


def test_restarts_and_losses_of_environments_are_reported():
    def task(index, report):
        report.on_restart("environment 3 failed")
        raise FailedTooOften("again and again")

    events, _ = events_of(task)
    assert events == [
        ("on_restart", ("environment 3 failed",)),
        (END, (RunResult(RunOutcome.FAILED_TOO_OFTEN, "again and again"),)),
    ]


def test_a_process_that_was_started_again_knows_its_restarts_and_its_episodes_before():
    def task(index, report):
        return RunResult(RunOutcome.FINISHED, f"{report.restarts} {report.episodes_before}")

    events, _ = events_of(task, restarts=2, episodes=7)
    assert events == [(END, (RunResult(RunOutcome.FINISHED, "2 7"),))]


@pytest.mark.parametrize(
    ("timeout_s", "is_asked", "outcome"),
    [(0.0, True, RunOutcome.FAULT), (0.0, False, RunOutcome.FINISHED),
     (900.0, True, RunOutcome.FINISHED), (None, True, RunOutcome.FINISHED)],
)  # fmt: skip
def test_an_environment_is_interrupted_if_it_is_late(capsys, timeout_s, is_asked, outcome):
    def task(index, report):
        if is_asked:
            report.environment_begins()
        signal.raise_signal(signal.SIGALRM)
        return FINISHED

    events, _ = events_of(task, timeout_s=timeout_s)
    _, (result,) = events[-1]
    assert result.outcome is outcome
    assert (EnvironmentHangs.__name__ in result.message) == (outcome is RunOutcome.FAULT)


def test_a_system_without_alarms_plays_too(monkeypatch):
    monkeypatch.delattr(signal, "SIGALRM")
    events, _ = events_of(lambda index, report: FINISHED)
    assert events == [(END, (FINISHED,))]


def test_a_parent_that_has_ended_is_no_error():
    ours, theirs = Pipe(duplex=False)
    ours.close()
    with theirs:
        run_task(lambda index, report: FINISHED, 0, theirs, memory())


@pytest.mark.parametrize("report", ["on_connected", "on_disconnected", "on_episode"])
def test_a_process_whose_parent_was_killed_ends_without_a_word(report, capsys):
    ours, theirs = Pipe(duplex=False)

    def task(index, observer):
        ours.close()
        getattr(observer, report)(*[EpisodeSummary(1.5, 10, 0.25)] * (report == "on_episode"))
        raise AssertionError("it goes on")

    with theirs, pytest.raises(SystemExit) as ended:
        run_task(task, 0, theirs, memory())
    assert ended.value.code == 0
    assert capsys.readouterr().err == ""


def test_the_keyboard_does_not_interrupt_a_child_and_sigterm_ends_it():
    def task(index, report):
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("this is not reached")

    with pytest.raises(SystemExit) as ended:
        events_of(task)
    assert ended.value.code == 0
