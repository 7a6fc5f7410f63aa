"""Named places where a test lets a process fail: it dies, gets an error of the system, or waits.

At each of them the package raises an audit event, ``sys.audit("relaax.NAME")``.

``RELAAX_FAILPOINTS`` says what happens where, such as ``saver.manifest=kill@2``:

* ``NAME=kill`` kills the process with SIGKILL,
* ``NAME=ENOSPC``, or another error's name, raises that OSError,
* ``NAME=wait:SECONDS`` waits.

``@N`` lets it happen when the process passes there for the N-th time, and no other time; without
it, it happens each time. Several are divided by commas.
"""

import errno
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

VARIABLE = "RELAAX_FAILPOINTS"

_EVENTS = "relaax."

#: All names, and where each is.
POINTS: Mapping[str, str] = {
    "saver.data": "before the data of a checkpoint is written",
    "saver.manifest": "between the data and the manifest of a checkpoint",
    "saver.written": "behind the manifest, before old checkpoints are deleted",
    "saver.delete": "before each blob that is deleted",
    "saver.aside": "before each blob that is set aside",
    "directory.write": "a temporary file is open, and empty",
    "directory.sync": "a temporary file is written, and not synced",
    "directory.replace": "a temporary file is synced, and has not its name",
    "directory.replaced": "a file has its name, and its directory is not synced",
    "shards.part": "a shard has saved its part, and has not said so",
    "shards.set": "all other shards have saved their parts, the first one has not",
    "bridge.call": "before a worker calls the parameter server",
    "bridge.apply": "before a gradient is applied",
    "bridge.applied": "a gradient was applied, and is not answered",
    "bridge.counted": "steps were counted, and are not answered",
    "replay.store": "before steps are stored",
    "replay.stored": "steps were stored, and are not answered",
    "replay.copy": "before each piece of what is stored is copied, to be saved",
    "writer.send": "before a message of steps is sent to a replay",
    "writer.stored": "a replay has answered, and its writer has not taken note",
}

#: Errors of the system that a disk or a network gives.
ERRORS = ("EACCES", "EIO", "ENOSPC", "EROFS")

_ACTIONS = f"kill, {', '.join(ERRORS)} or wait:SECONDS, with @N for the N-th time alone"

_FAULT = re.compile(r"(?P<action>kill|wait:(?P<seconds>\d+(\.\d+)?)|[A-Z]+)(@(?P<at>[1-9]\d*))?")


@dataclass(frozen=True)
class Fault:
    """What happens at a point."""

    #: ``kill``, ``wait``, or the name of an error.
    action: str
    seconds: float = 0.0
    #: At which time; None for each.
    at: int | None = None

    def happen(self, point: str) -> None:
        """Let it happen; OSError where it is an error."""
        if self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.action == "wait":
            time.sleep(self.seconds)
        else:
            number = getattr(errno, self.action)
            raise OSError(number, f"{os.strerror(number)} (failpoint {point})")


class Failpoints:
    """The faults of a process, which many threads may pass."""

    def __init__(self, faults: Mapping[str, Fault]) -> None:
        self._faults = faults
        self._lock = threading.Lock()
        self._passed = dict.fromkeys(faults, 0)

    @classmethod
    def parse(cls, text: str) -> "Failpoints":
        """Read the variable; ValueError, which lists what there is, for what is unknown."""
        return cls(dict(_fault_in(entry) for entry in text.split(",") if entry.strip()))

    def passing(self, point: str) -> None:
        """Let happen what is to happen at ``point`` now."""
        fault = self._faults.get(point)
        if fault is None:
            return
        with self._lock:
            self._passed[point] += 1
            is_now = fault.at in (None, self._passed[point])
        if is_now:
            fault.happen(point)


def _fault_in(entry: str) -> tuple[str, Fault]:
    name, _, what = (part.strip() for part in entry.partition("="))
    if name not in POINTS:
        raise ValueError(
            f"{VARIABLE}: there is no failpoint {name!r}; there are: {', '.join(POINTS)}"
        )
    found = _FAULT.fullmatch(what)
    action = "" if found is None else found["action"].partition(":")[0]
    if found is None or action not in ("kill", "wait", *ERRORS):
        raise ValueError(f"{VARIABLE}: {name} must be {_ACTIONS}, is {what!r}")
    at = None if found["at"] is None else int(found["at"])
    return name, Fault(action, float(found["seconds"] or 0), at)


@cache
def failpoints() -> Failpoints:
    """Return those of this process; a child that is forked has a count of its own."""
    return Failpoints.parse(os.environ.get(VARIABLE, ""))


def install() -> None:
    """Let this process, and all that it forks, fail as ``RELAAX_FAILPOINTS`` says."""
    failpoints()
    sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event.startswith(_EVENTS):
        failpoints().passing(event.removeprefix(_EVENTS))
