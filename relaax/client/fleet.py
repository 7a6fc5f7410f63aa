"""A fleet: several environments, a process each, watched by the process that started them."""

import contextlib
import enum
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_uint64
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, TypeAlias

from relaax.client.failure import Failure
from relaax.client.observer import EpisodeSummary, RunObserver
from relaax.client.progress import Progress, ProgressDisplay
from relaax.errors import RelaaxError
from relaax.protocol.binary import ErrorCode

_POLL_S = 0.2
_PATIENCE_WITH_MEMBERS_S = 5.0
_ONE_THREAD_EACH = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Outcome(enum.Enum):
    """Why a run of episodes ended."""

    FINISHED = "the episodes that were asked for are over"
    STOPPED = "somebody asked it to stop"
    SERVER_GONE = "the server answered once, and then no more"
    UNREACHED = "the server never answered"
    UNUSABLE = "the environment cannot be made or used"
    FAILED = "an error ended it"


@dataclass(frozen=True)
class Ended:
    """Why a run ended, and the words for it."""

    outcome: Outcome
    message: str


def ended_by(failure: Failure, was_connected: bool) -> Ended:
    """Return how a run ends by a failure to start an episode."""
    if failure.is_final and failure.code != ErrorCode.TRAINING_IS_OVER:
        return Ended(Outcome.UNUSABLE, failure.message)
    outcome = Outcome.SERVER_GONE if was_connected else Outcome.UNREACHED
    return Ended(outcome, failure.message)


class MemberReport(RunObserver):
    """Tells the parent process what a member of its fleet does."""

    def __init__(self, pipe: "Connection[Any, Any]", steps: Any) -> None:
        self._pipe = pipe
        self._steps = steps

    def on_connected(self) -> None:
        """Tell that there is a session."""
        self._pipe.send(True)

    def on_disconnected(self) -> None:
        """Tell that there is none any more."""
        self._pipe.send(False)

    def on_step(self, count: int = 1) -> None:
        """Count steps, in memory that the parent reads."""
        self._steps.value += count

    def on_episode(self, summary: EpisodeSummary) -> None:
        """Tell the summary."""
        self._pipe.send(summary)


MemberFunction: TypeAlias = Callable[[int, MemberReport], Ended]
"""What a member does, given its index; pickled, to reach the new process."""


def run_fleet(member: MemberFunction, sizes: Sequence[int], server: str) -> int:
    """Run ``member`` in a process for each of ``sizes`` and return the exit status.

    sizes: how many environments each process has.

    0: the episodes are over, somebody stopped the fleet, or the server went away after it had
    answered (training is over). 1: the server was never reached, or an error ended a member. 2: the
    environment cannot be made or used. SIGINT and SIGTERM end the members.
    """
    progress = Progress(sum(sizes))
    display = ProgressDisplay(progress, sys.stdout)
    with _stop_signals() as signals, _Fleet(member, sizes, progress) as fleet:
        while fleet.is_running and not signals and not fleet.has(Outcome.UNUSABLE):
            fleet.listen(_POLL_S)
            display.refresh()
    if not fleet.has(Outcome.UNUSABLE):
        display.finish()
    return _conclude(fleet, server, was_stopped=bool(signals))


class _Fleet:
    """The processes and what is known of them; leaving its context ends them."""

    def __init__(self, member: MemberFunction, sizes: Sequence[int], progress: Progress) -> None:
        self.ended: list[Ended] = []
        self.was_connected = False
        self._progress = progress
        _leave_one_thread_to_each_member()
        context = multiprocessing.get_context("spawn")
        self._members = [_Member(context, member, index, size) for index, size in enumerate(sizes)]

    def __enter__(self) -> "_Fleet":
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            member.process.terminate()
        deadline = time.monotonic() + _PATIENCE_WITH_MEMBERS_S
        for member in self._members:
            member.end(deadline)

    @property
    def is_running(self) -> bool:
        """Whether any member has not ended."""
        return len(self.ended) < len(self._members)

    def has(self, outcome: Outcome) -> bool:
        """Return whether any member ended that way."""
        return any(ended.outcome is outcome for ended in self.ended)

    def listen(self, timeout_s: float) -> None:
        """Take in what the members have told, waiting for it no longer than ``timeout_s``."""
        pipes = {member.pipe: member for member in self._members if member.is_running}
        for pipe in multiprocessing.connection.wait(list(pipes), timeout_s):
            member = pipes[pipe]  # type: ignore[index]
            for event in member.receive():
                self._take(member, event)
        self._progress.steps = sum(member.steps.value for member in self._members)
        self._progress.connected = sum(
            member.environments for member in self._members if member.is_connected
        )

    def _take(self, member: "_Member", event: "bool | EpisodeSummary | Ended") -> None:
        match event:
            case bool():
                member.is_connected = event
                self.was_connected = self.was_connected or event
            case EpisodeSummary():
                self._progress.add_episode(event)
            case Ended():
                member.is_running = member.is_connected = False
                self.ended.append(event)


class _Member:
    """One process of a fleet, seen from the parent."""

    def __init__(
        self,
        context: multiprocessing.context.SpawnContext,
        member: MemberFunction,
        index: int,
        environments: int,
    ) -> None:
        self.environments = environments
        self.is_running = True
        self.is_connected = False
        self.steps = context.RawValue(c_uint64, 0)
        self.pipe, theirs = context.Pipe(duplex=False)
        self.process: SpawnProcess = context.Process(
            target=_run_member, args=(member, index, theirs, self.steps), daemon=True
        )
        self.process.start()
        theirs.close()

    def receive(self) -> Iterator[Any]:
        """Yield what the process has told since the last time."""
        try:
            while self.is_running and self.pipe.poll():
                yield self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            status = self.process.exitcode
            yield Ended(Outcome.FAILED, f"an environment process ended with status {status}")

    def end(self, deadline: float) -> None:
        """Wait for the process, which was told to end, until ``deadline``; then kill it."""
        self.process.join(max(deadline - time.monotonic(), 0))
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


def _run_member(
    member: MemberFunction, index: int, pipe: "Connection[Any, Any]", steps: Any
) -> None:
    # A terminal sends SIGINT to the members too: it is the parent who decides what follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _exit)
    # Who waits for a server is in the progress line of the parent.
    logging.getLogger("relaax.client").setLevel(logging.ERROR)
    try:
        ended = member(index, MemberReport(pipe, steps))
    except RelaaxError as error:
        ended = Ended(Outcome.FAILED, str(error))
    except Exception as error:  # the parent reports it, and the other members go on
        traceback.print_exc()
        ended = Ended(Outcome.FAILED, f"{type(error).__name__}: {error}")
    # From here on there is nothing left to be closed in order.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(BrokenPipeError):
        pipe.send(ended)


def _exit(signal_number: int, frame: object) -> None:
    sys.exit(0)


def _leave_one_thread_to_each_member() -> None:
    for name in _ONE_THREAD_EACH:
        os.environ.setdefault(name, "1")


@contextlib.contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """Yield a list that SIGINT and SIGTERM add themselves to."""
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda n, _: received.append(n)) for number in numbers]
    try:
        yield received
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _conclude(fleet: _Fleet, server: str, was_stopped: bool) -> int:
    """Say how the run ended and return the exit status."""
    if was_stopped:
        print("stopped")
        return 0
    for outcome, status in ((Outcome.UNUSABLE, 2), (Outcome.FAILED, 1)):
        if fleet.has(outcome):
            _complain(fleet, outcome)
            return status
    if fleet.was_connected:
        if fleet.has(Outcome.SERVER_GONE):
            print(f"the RLX server at {server} has gone: training is over")
        return 0
    print(f"there was never a session with the RLX server at {server}", file=sys.stderr)
    _complain(fleet, Outcome.UNREACHED)
    return 1


def _complain(fleet: _Fleet, outcome: Outcome) -> None:
    messages = {" ".join(e.message.split()) for e in fleet.ended if e.outcome is outcome}
    for message in sorted(messages):
        print(message, file=sys.stderr)
