"""Environment processes, watched by the process that starts them."""

import multiprocessing
import multiprocessing.connection
import os
import time
from collections.abc import Iterator, Sequence
from ctypes import c_uint64
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from relaax.client.child_process import ProcessEvent, ProcessTask, run_task
from relaax.client.run_progress import RunProgress
from relaax.client.run_result import RunOutcome, RunResult
from relaax.client.simulator import EpisodeSummary

TIME_TO_END_S = 5.0
_ONE_THREAD_EACH = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class EnvironmentProcesses:
    """A process for each of ``sizes``, which says how many environments it has.

    They do ``task``; what they report is counted in ``progress``. Leaving the context ends them.
    """

    def __init__(self, task: ProcessTask, sizes: Sequence[int], progress: RunProgress) -> None:
        #: Of the processes that have ended their task, or themselves.
        self.results: list[RunResult] = []
        #: Whether any process has had a session with the server.
        self.was_connected = False
        self._progress = progress
        _leave_one_thread_to_each_process()
        context = multiprocessing.get_context("spawn")
        self._processes = [
            _EnvironmentProcess(context, task, index, size) for index, size in enumerate(sizes)
        ]

    def __enter__(self) -> "EnvironmentProcesses":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        deadline = time.monotonic() + TIME_TO_END_S
        for process in self._processes:
            process.end(deadline)

    @property
    def is_running(self) -> bool:
        """Whether any process has not ended its task."""
        return len(self.results) < len(self._processes)

    def has(self, outcome: RunOutcome) -> bool:
        """Return whether the task of any process ended that way."""
        return any(result.outcome is outcome for result in self.results)

    def listen(self, timeout_s: float) -> None:
        """Take in what the processes have reported; wait at most ``timeout_s`` seconds for it."""
        pipes = {process.pipe: process for process in self._processes if process.is_running}
        for pipe in multiprocessing.connection.wait(list(pipes), timeout_s):
            process = pipes[pipe]  # type: ignore[index]
            for event in process.receive():
                self._take(process, event)
        self._progress.steps = sum(process.steps.value for process in self._processes)
        self._progress.connected = sum(
            process.environments for process in self._processes if process.is_connected
        )

    def _take(self, process: "_EnvironmentProcess", event: ProcessEvent) -> None:
        match event:
            case bool():
                process.is_connected = event
                self.was_connected = self.was_connected or event
            case EpisodeSummary():
                self._progress.add_episode(event)
            case RunResult():
                process.is_running = process.is_connected = False
                self.results.append(event)


class _EnvironmentProcess:
    """One process, seen from its parent."""

    def __init__(
        self, context: SpawnContext, task: ProcessTask, index: int, environments: int
    ) -> None:
        self.environments = environments
        self.is_running = True
        self.is_connected = False
        self.steps: Any = context.RawValue(c_uint64, 0)
        self.pipe, theirs = context.Pipe(duplex=False)
        self._process: SpawnProcess = context.Process(
            target=run_task, args=(task, index, theirs, self.steps), daemon=True
        )
        self._process.start()
        theirs.close()

    def receive(self) -> Iterator[ProcessEvent]:
        """Yield what the process has reported since the last time."""
        try:
            while self.is_running and self.pipe.poll():
                yield self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            status = self._process.exitcode
            message = f"an environment process ended with status {status}"
            yield RunResult(RunOutcome.FAILED, message)

    def terminate(self) -> None:
        """Ask the process to end."""
        self._process.terminate()

    def end(self, deadline: float) -> None:
        """Wait for the process, which was asked to end, until ``deadline``; then kill it."""
        self._process.join(max(deadline - time.monotonic(), 0))
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self.pipe.close()


def _leave_one_thread_to_each_process() -> None:
    for name in _ONE_THREAD_EACH:
        os.environ.setdefault(name, "1")
