"""Lets a process of the soak fail, and ends what can be ended."""

import contextlib
import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass

from soak_links import Cut
from soak_processes import Run
from soak_schedule import Blow, Fault
from soak_training import Training

_WORKER_STARTS = re.compile(r"worker (\d+) starts \(pid (\d+)\)")


@dataclass(frozen=True)
class Strike:
    """A fault that goes on."""

    words: str
    seconds: float
    #: Ends it.
    heal: Callable[[], None]


class Striker:
    """Lets processes of a training fail."""

    def __init__(self, training: Training) -> None:
        self._training = training

    def strike(self, fault: Fault) -> Strike:
        """Begin ``fault``."""
        if fault.role == "worker":
            return self._strike_worker(fault)
        members = self._training.of(fault.role)
        process = members[fault.number % len(members)]
        match fault.how:
            case Blow.KILL:
                process.kill()
                return Strike(f"{process.name} is killed", 0.0, _nothing)
            case Blow.STOP:
                process.send(signal.SIGSTOP)
                words = f"{process.name} is stopped for {fault.seconds:.1f} s"
                return Strike(words, fault.seconds, lambda: process.send(signal.SIGCONT))
            case Cut() as cut:
                return self._cut(process.name, cut, fault.seconds)

    def _cut(self, name: str, cut: Cut, seconds: float) -> Strike:
        links = self._training.links[name]
        for link in links:
            link.cut(cut)

        def heal() -> None:
            for link in links:
                link.heal()

        return Strike(f"{name} is cut off for {seconds:.1f} s: {cut.value}", seconds, heal)

    def _strike_worker(self, fault: Fault) -> Strike:
        servers = self._training.of("RLX server")
        server = servers[fault.number % len(servers)]
        workers = _workers_of(server.run)
        if not workers:
            return Strike(f"no worker of {server.name} runs", 0.0, _nothing)
        number = sorted(workers)[fault.number // len(servers) % len(workers)]
        pid, name = workers[number], f"worker {number} of {server.name}"
        if fault.how is Blow.KILL:
            _send(pid, signal.SIGKILL)
            return Strike(f"{name} is killed", 0.0, _nothing)
        _send(pid, signal.SIGSTOP)
        words = f"{name} is stopped for {fault.seconds:.1f} s"
        return Strike(words, fault.seconds, lambda: _send(pid, signal.SIGCONT))


def _workers_of(run: Run) -> dict[int, int]:
    """Return the pids of shared workers by their numbers."""
    return {int(number): int(pid) for number, pid in _WORKER_STARTS.findall(run.text())}


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended with its server
        os.kill(pid, number)


def _nothing() -> None:
    """End a fault that has ended."""
