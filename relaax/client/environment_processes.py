"""Environment processes, watched by the process that starts them."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import time
from collections.abc import Iterator, Sequence
from ctypes import c_double, c_uint64
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from relaax.client.child_process import (
    END,
    Memory,
    ProcessEvent,
    ProcessTask,
    alarm_signal,
    run_task,
)
from relaax.client.restarts import FailedTooOften, Restarts, lost_message, restart_message
from relaax.client.run_progress import RunProgress
from relaax.client.simulator import RunOutcome, RunResult

TIME_TO_END_S = 5.0

#: How long an environment that hangs may take to let itself be interrupted, before it is killed.
TIME_TO_RETURN_S = 10.0

_ONE_THREAD_EACH = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class EnvironmentProcesses:
    """A process for each of ``sizes``: the number of its environments.

    Each process does ``task``; its events are counted in ``progress``. Leaving the context ends all
    of them.

    A process is started again if it dies or its environment fails after at least one step, or if an
    environment of ``env`` has not returned for ``timeout_s`` seconds and cannot be interrupted.
    After too many restarts its environments are lost, and the other processes go on.
    """

    def __init__(
        self,
        task: ProcessTask,
        sizes: Sequence[int],
        progress: RunProgress,
        env: str = "",
        timeout_s: float | None = None,
    ) -> None:
        #: Of the processes that have ended their task, or themselves.
        self.results: list[RunResult] = []
        self._progress = progress
        _leave_one_thread_to_each_process()
        context = multiprocessing.get_context("spawn")
        self._processes = [
            _EnvironmentProcess(context, task, index, sizes, env, timeout_s)
            for index in range(len(sizes))
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

    def has(self, *outcomes: RunOutcome) -> bool:
        """Return whether the task of any process ended in one of these ways."""
        return any(result.outcome in outcomes for result in self.results)

    def listen(self, timeout_s: float) -> None:
        """Take the events of all processes; wait at most ``timeout_s`` seconds for them."""
        for process in self._processes:
            process.look_after()
        pipes = {process.pipe: process for process in self._processes if process.is_there}
        for pipe in multiprocessing.connection.wait(list(pipes), timeout_s):
            process = pipes[pipe]  # type: ignore[index]
            for event, arguments in process.receive():
                if event == END:
                    self._note_end(process, *arguments)
                else:
                    process.note(event)
                    getattr(self._progress, event)(*arguments)
        self._progress.steps = sum(process.steps.value for process in self._processes)
        self._progress.lost = sum(process.lost for process in self._processes)
        self._progress.connected = sum(
            process.environments for process in self._processes if process.is_connected
        )

    def _note_end(self, process: "_EnvironmentProcess", result: RunResult) -> None:
        process.is_there = process.is_connected = False
        if result.outcome is RunOutcome.FAULT:
            try:
                message = process.restart_after(result.message)
            except FailedTooOften as error:
                result = RunResult(RunOutcome.FAILED_TOO_OFTEN, str(error))
            else:
                if message is not None:
                    self._progress.on_restart(message)
                    return
                result = RunResult(RunOutcome.FAILED, result.message)
        process.is_running = False
        self.results.append(result)
        if result.outcome is RunOutcome.FAILED_TOO_OFTEN:
            process.environments = 0
            if self.is_running:
                self._progress.on_lost(lost_message(FailedTooOften(result.message)))


class _EnvironmentProcess:
    """One process, seen from its parent: one after the other, as it is started again."""

    def __init__(
        self,
        context: SpawnContext,
        task: ProcessTask,
        index: int,
        sizes: Sequence[int],
        env: str,
        timeout_s: float | None,
    ) -> None:
        self.environments = self._size = sizes[index]
        #: Whether its task is not over, and whether there is a process now that does it.
        self.is_running = self.is_there = True
        self.is_connected = False
        self.episodes = 0
        self.steps: Any = context.RawValue(c_uint64, 0)
        self._busy_since: Any = context.RawValue(c_double, 0.0)
        self._context, self._task, self._index = context, task, index
        self._name = _name_of(sum(sizes[:index]), self.environments, env)
        self._timeout_s = timeout_s
        self._restarts = Restarts()
        self._starts_at = 0.0
        #: Since when the environment was busy that was interrupted last.
        self._interrupted = 0.0
        self._is_killed = False
        self._start()

    def _start(self) -> None:
        memory = Memory(
            self.steps, self._busy_since, self._timeout_s, self._restarts.count, self.episodes
        )
        self._busy_since.value = 0.0
        self._is_killed = False
        self.environments = self._size  # a new process makes all
        self.pipe, theirs = self._context.Pipe(duplex=False)
        self._process: SpawnProcess = self._context.Process(
            target=run_task, args=(self._task, self._index, theirs, memory), daemon=True
        )
        self._process.start()
        theirs.close()
        self.is_there = True

    def note(self, event: str) -> None:
        """Take note of an event of the process."""
        match event:
            case "on_connected" | "on_disconnected":
                self.is_connected = event == "on_connected"
            case "on_episode":
                self.episodes += 1
            case "on_lost":
                self.environments -= 1

    @property
    def lost(self) -> int:
        """How many of its environments are not made again."""
        return self._size - self.environments

    def look_after(self) -> None:
        """Start the process again, if it is time to; interrupt an environment that hangs."""
        if not self.is_running:
            return
        if not self.is_there:
            if time.monotonic() >= self._starts_at:
                self._process.kill()  # it has said that it ends
                self._process.join()
                self._start()
            return
        since = self._busy_since.value
        if self._timeout_s is None or not since:
            return
        late_s = time.monotonic() - since - self._timeout_s
        if late_s > 0 and since != self._interrupted:
            self._interrupted = since
            self._interrupt()
        elif late_s > TIME_TO_RETURN_S and not self._is_killed:
            self._is_killed = True
            self._process.kill()

    def _interrupt(self) -> None:
        alarm, pid = alarm_signal(), self._process.pid
        if alarm is not None and pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, alarm)

    def restart_after(self, why: str) -> str | None:
        """Schedule the next start of the process; return the line for the log.

        None if it has never made a step: it would fail again. FailedTooOften after too many starts.
        """
        if not self.steps.value:
            return None
        pause_s = self._restarts.next_pause_s(self._name, why)
        self._starts_at = time.monotonic() + pause_s
        self.pipe.close()
        return restart_message(self._name, why, pause_s, self._restarts.count)

    def receive(self) -> Iterator[ProcessEvent]:
        """Yield the events of the process since the last call."""
        try:
            while self.is_there and self.pipe.poll():
                yield self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            message = f"an environment process ended with status {self._process.exitcode}"
            if self._is_killed:
                message = (
                    f"it has not returned for {self._timeout_s:g} s (--environment-timeout), and "
                    "could not be interrupted"
                )
            yield END, (RunResult(RunOutcome.FAULT, message),)

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


def _name_of(first: int, count: int, env: str) -> str:
    """Return the name of a process's environments in messages."""
    numbers = f"environment {first}"
    if count > 1:
        numbers = f"environments {first} to {first + count - 1} of one connection"
    return f"{numbers} ({env})" if env else numbers


def _leave_one_thread_to_each_process() -> None:
    for name in _ONE_THREAD_EACH:
        os.environ.setdefault(name, "1")
