"""Environment processes and their parent: real processes, with small tasks."""

import time
from collections.abc import Callable

import process_tasks
import psutil
import pytest

from relaax.client.environment_processes import EnvironmentProcesses
from relaax.client.gymnasium_factory import GymnasiumFactory
from relaax.client.gymnasium_tasks import VectorEnvironmentsTask
from relaax.client.run_environments import run_environments
from relaax.client.run_options import RunOptions, parse_options
from relaax.client.run_progress import RunProgress
from relaax.client.simulator import RunOutcome

pytestmark = pytest.mark.integration


def listen_until(
    processes: EnvironmentProcesses, condition: Callable[[], bool], timeout_s: float = 60
) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        processes.listen(0.01)


def test_what_the_processes_report_is_counted() -> None:
    progress = RunProgress(4)
    with EnvironmentProcesses(process_tasks.plays, [2, 2], progress) as processes:
        listen_until(processes, lambda: not processes.is_running)
    assert (progress.steps, progress.episodes, progress.connected) == (3, 2, 0)
    assert [result.outcome for result in processes.results] == [RunOutcome.FINISHED] * 2
    assert progress.was_connected


def test_the_environments_of_connected_processes_are_counted(server) -> None:
    arguments = ("--env", "CartPole-v1", "--count", "5", "--per-connection", "3")
    options = parse_options(["--rlx-server", server.url, *arguments])
    progress = RunProgress(5)
    task = VectorEnvironmentsTask(options, GymnasiumFactory("CartPole-v1", {}))
    with EnvironmentProcesses(task, [3, 2], progress) as processes:
        listen_until(processes, lambda: progress.connected == 5)


def test_a_process_that_ends_without_a_result_has_failed() -> None:
    progress = RunProgress(1)
    with EnvironmentProcesses(process_tasks.exits, [1], progress) as processes:
        listen_until(processes, lambda: not processes.is_running)
    (result,) = processes.results
    assert processes.has(RunOutcome.FAILED)
    assert result.message == "an environment process ended with status 3"
    assert not progress.was_connected


@pytest.mark.parametrize("task", [process_tasks.stays, process_tasks.stays_and_ignores_sigterm])
def test_no_process_is_left_behind(task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaax.client.environment_processes.TIME_TO_END_S", 0.5)
    progress = RunProgress(2)
    with EnvironmentProcesses(task, [1, 1], progress) as processes:
        listen_until(processes, lambda: progress.connected == 2)
        children = [
            child for child in psutil.Process().children() if "spawn_main" in str(child.cmdline())
        ]
        assert len(children) == 2
    assert not any(child.is_running() for child in children)


@pytest.mark.parametrize(
    ("task", "why"),
    [
        (process_tasks.dies_once, "an environment process ended with status -9"),
        (process_tasks.hangs_once, "EnvironmentHangs: it has not returned for 0.2 s"),
        (
            process_tasks.hangs_and_cannot_be_interrupted,
            "it has not returned for 0.2 s (--environment-timeout), and could not be interrupted",
        ),
    ],
)
def test_a_process_that_dies_or_hangs_is_started_again(task, why, caplog, monkeypatch) -> None:
    monkeypatch.setattr("relaax.client.environment_processes.TIME_TO_RETURN_S", 0.2)
    progress = RunProgress(3)
    with EnvironmentProcesses(task, [3], progress, "Game-v1", timeout_s=0.2) as processes:
        listen_until(processes, lambda: not processes.is_running)
    assert [result.message for result in processes.results] == ["done"]
    assert (progress.made_again, progress.steps) == (1, 2)
    (message,) = caplog.messages
    begins = "environments 0 to 2 of one connection (Game-v1) failed ("
    assert message.startswith(begins + why)


def test_an_environment_that_hangs_is_killed_where_there_are_no_alarms(caplog, monkeypatch) -> None:
    monkeypatch.delattr("signal.SIGALRM")
    monkeypatch.setattr("relaax.client.environment_processes.TIME_TO_RETURN_S", 0.2)
    task, progress = process_tasks.hangs_once, RunProgress(1)
    with EnvironmentProcesses(task, [1], progress, "Game-v1", timeout_s=0.2) as processes:
        listen_until(processes, lambda: not processes.is_running)
    assert [result.message for result in processes.results] == ["done"]
    assert "and could not be interrupted" in caplog.text


def test_a_process_whose_environment_fails_plays_the_episodes_that_are_left(caplog) -> None:
    progress = RunProgress(1)
    with EnvironmentProcesses(process_tasks.fails_once, [1], progress) as processes:
        listen_until(processes, lambda: not processes.is_running)
    (result,) = processes.results
    assert (result.message, progress.episodes) == ("restart 1 after 1 episodes", 1)
    assert "environment 0 failed (OSError: the game is gone)" in caplog.text


def test_environments_that_are_lost_are_counted_and_the_others_play_on(caplog, monkeypatch) -> None:
    monkeypatch.setattr("relaax.client.restarts.MOST_RESTARTS", 0)
    progress = RunProgress(5)
    with EnvironmentProcesses(process_tasks.loses_one, [2, 3], progress, "Game-v1") as processes:
        listen_until(processes, lambda: not processes.is_running)
    assert progress.lost == 3
    assert "lost 3" in str(progress.line(0.0))
    assert processes.has(RunOutcome.TRAINING_OVER)
    assert "environment 3 failed" in caplog.messages
    assert caplog.messages.count("doubtful: it may be wrong") == 1


def test_the_run_ends_with_the_error_when_no_environment_is_left(capfd, monkeypatch) -> None:
    monkeypatch.setattr("relaax.client.restarts.MOST_RESTARTS", 1)
    options = RunOptions("localhost:1", "Game-v1", count=2)
    status = run_environments(process_tasks.fails, options)
    assert status == 1
    said = capfd.readouterr().err
    assert "environment 1 (Game-v1) failed, and was made again 1 times within 600 s" in said
    assert "environment 0 (Game-v1) failed, and was made again 1 times within 600 s" in said
    assert "OSError: game 0 is gone" in said
