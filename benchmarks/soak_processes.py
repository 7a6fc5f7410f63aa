"""The processes of the soak: each is started again when it has ended, and keeps what it counted."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from processes import die_with_parent

from relaax.telemetry.kept_counts import KeptCounts

#: An environment variable that every process of a soak inherits, so that none is overlooked.
MARK = "RELAAX_SOAK_DIRECTORY"

STOP_DEADLINE_S = 60.0


@dataclass(frozen=True)
class Sample:
    """What a process and its children use at a moment."""

    at: float
    mib: float
    descriptors: int


@dataclass
class Run:
    """A process from its start to its end."""

    process: subprocess.Popen[bytes]
    log: Path
    started_at: float
    counts: KeptCounts | None = None
    samples: list[Sample] = field(default_factory=list)
    #: Since when it serves; None as long as it starts.
    ready_at: float | None = None
    #: Whether the soak has killed it.
    was_killed: bool = False

    @property
    def is_alive(self) -> bool:
        """Whether it runs, or is stopped."""
        return self.process.poll() is None

    def family(self) -> list[psutil.Process]:
        """Return the process and what it has started."""
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self.process.pid)
            return [parent, *parent.children(recursive=True)]
        return []

    def text(self) -> str:
        """Return what it has said."""
        return self.log.read_text(errors="replace")

    def totals(self) -> Mapping[str, float]:
        """Return what it has counted, also after its end."""
        return {} if self.counts is None else self.counts.totals()


class Supervised:
    """A program that is started again as soon as it has ended.

    One that ``dies_whole`` is killed with what it has started, which does its work.
    """

    def __init__(
        self,
        role: str,
        name: str,
        command: Sequence[Any],
        directory: Path,
        has_counts: bool = False,
        is_ready: Callable[["Supervised"], bool] = lambda each: True,
        dies_whole: bool = False,
    ) -> None:
        self.role = role
        self.name = name
        self._command = [str(each) for each in command]
        self._directory = directory
        self._has_counts = has_counts
        self._is_ready = is_ready
        self._dies_whole = dies_whole
        self.runs: list[Run] = []
        #: Exit statuses of runs that ended by themselves.
        self.unexpected: list[int] = []
        self._sample_at = 0.0
        self._ends = False

    @property
    def run(self) -> Run:
        """The latest run."""
        return self.runs[-1]

    @property
    def is_ready(self) -> bool:
        """Whether it serves, and what it counts is read."""
        knows_counts = self.run.counts is not None or not self._has_counts
        return self.run.is_alive and knows_counts and self._is_ready(self)

    def note_ready(self) -> None:
        """Take note that it serves from now on."""
        self.run.ready_at = time.monotonic()

    def start(self) -> None:
        """Start it."""
        log = self._directory / f"{self.name.replace(' ', '-')}-{len(self.runs) + 1}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - a program of our own
                self._command,
                cwd=self._directory,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", MARK: str(self._directory)},
                preexec_fn=partial(  # noqa: PLW1509 - it takes no lock that a thread may hold
                    die_with_parent, os.getpid(), signal.SIGTERM
                ),
            )
        self.runs.append(Run(process, log, time.monotonic()))

    def look_after(self, sample_every_s: float) -> None:
        """Start it again if it has ended; else take note of its counts, and of what it uses."""
        run = self.run
        if self._ends:
            return
        if not run.is_alive:
            if not run.was_killed:
                self.unexpected.append(run.process.returncode)
            self.start()
            return
        if self._has_counts and run.counts is None:
            run.counts = _counts_of(run)
        now = time.monotonic()
        if now >= self._sample_at:
            self._sample_at = now + sample_every_s
            if run.ready_at is None and self.is_ready:
                self.note_ready()
            self._sample(now)

    def kill(self) -> None:
        """Kill it: what it has started ends by itself, or with it, or the soak will find it."""
        self.run.was_killed = True
        if self._dies_whole:
            self.send(signal.SIGKILL)
        self.run.process.kill()
        self.run.process.wait(STOP_DEADLINE_S)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it and to what it has started."""
        for member in self.run.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                member.send_signal(number)

    def ask_to_end(self) -> None:
        """Send it SIGTERM, and start it no more."""
        self._ends = True
        self.run.process.terminate()

    def stop(self) -> int | None:
        """Wait for its end; return its exit status, None if it does not come in time."""
        try:
            return self.run.process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            return None

    def _sample(self, now: float) -> None:
        mib, descriptors = 0.0, 0
        for member in self.run.family():
            with contextlib.suppress(psutil.Error, OSError):
                mib += member.memory_info().rss / (1 << 20)
                descriptors += member.num_fds()
        self.run.samples.append(Sample(now, mib, descriptors))


def _counts_of(run: Run) -> KeptCounts | None:
    """Return what a process counts, or what it has started; None as long as there is nothing."""
    found = (KeptCounts.of_process(member.pid) for member in run.family())
    return next((counts for counts in found if counts is not None), None)


def left_over(directory: Path) -> list[psutil.Process]:
    """Return the processes of a soak in ``directory`` that still run."""
    return [each for each in psutil.process_iter() if _is_of(each, directory)]


def _is_of(process: psutil.Process, directory: Path) -> bool:
    try:
        return process.environ().get(MARK) == str(directory)
    except psutil.Error:  # it has just ended, or is another user's
        return False
