"""Environment processes and their parent: real processes, with small tasks."""

import time
from collections.abc import Callable

import process_tasks
import psutil
import pytest

from relaax.client.environment_processes import EnvironmentProcesses
from relaax.client.gymnasium_factory import GymnasiumFactory
from relaax.client.gymnasium_tasks import VectorEnvironmentsTask
from relaax.client.run_progress import RunProgress
from relaax.client.run_result import RunOutcome
from relaax.client.runner_options import parse_options

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
    assert processes.was_connected


def test_the_environments_of_connected_processes_are_counted(server) -> None:
    arguments = ("--env", "CartPole-v1", "--count", "5", "--per-connection", "3")
    options = parse_options(["--rlx-server", server.url, *arguments])
    progress = RunProgress(5)
    task = VectorEnvironmentsTask(options, GymnasiumFactory("CartPole-v1", {}))
    with EnvironmentProcesses(task, [3, 2], progress) as processes:
        listen_until(processes, lambda: progress.connected == 5)


def test_a_process_that_ends_without_a_result_has_failed() -> None:
    with EnvironmentProcesses(process_tasks.exits, [1], RunProgress(1)) as processes:
        listen_until(processes, lambda: not processes.is_running)
    (result,) = processes.results
    assert processes.has(RunOutcome.FAILED)
    assert result.message == "an environment process ended with status 3"
    assert not processes.was_connected


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
