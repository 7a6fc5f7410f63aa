"""TensorBoard event files, without TensorFlow."""

import os
import re
import secrets
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_NOT_IN_TAGS = re.compile(r"[^-/\w.]")


@contextmanager
def without_torch() -> Iterator[None]:
    """Hide PyTorch from the imports inside, unless it is loaded already.

    tensorboardX imports PyTorch wherever it is installed. That costs 200 MB and a second, and is
    needed only to write PyTorch's tensors, which RELAAX never does.
    """
    if "torch" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment] # None makes its import fail
    try:
        yield
    finally:
        del sys.modules["torch"]


with without_torch():
    from tensorboardX.proto.event_pb2 import Event, SessionLog
    from tensorboardX.proto.summary_pb2 import Summary
    from tensorboardX.record_writer import RecordWriter

__all__ = ["EventFile", "Scalar", "Summary", "tag"]


@dataclass(frozen=True)
class Scalar:
    """One value of a metric."""

    tag: str
    y: float
    #: The global step at which TensorBoard shows the value.
    step: int
    #: Seconds since the epoch.
    wall_time: float


def tag(name: str) -> str:
    """Return the tag that TensorFlow's and tensorboardX's own writers make of a name.

    Letters, digits, ``_``, ``-``, ``.`` and ``/`` stay. Each other character becomes ``_``:
    ``learner/policy loss`` is shown as ``learner/policy_loss``.
    """
    return _NOT_IN_TAGS.sub("_", name).lstrip("/")


class EventFile:
    """One new event file in a directory; every method may raise OSError.

    The name begins with the time, so that TensorBoard reads the files of restarted trainings in
    order. It ends with random digits, so that two runs never write the same file.
    """

    def __init__(self, directory: Path) -> None:
        now = time.time()
        unique = f"{os.getpid()}.{secrets.token_hex(4)}"
        name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{unique}"
        self.path = directory / name
        self._records = RecordWriter(str(self.path))
        self._write(Event(wall_time=now, file_version="brain.Event:2"))

    def write(self, scalar: Scalar) -> None:
        """Append a value, which may stay in memory until the next flush."""
        value = Summary.Value(tag=scalar.tag, simple_value=scalar.y)
        self._write(
            Event(wall_time=scalar.wall_time, step=scalar.step, summary=Summary(value=[value]))
        )

    def begin(self, step: int) -> None:
        """Mark that the run goes on from ``step``.

        TensorBoard hides points of earlier files at that step or a later one: they were reached
        after the checkpoint from which the run goes on.
        """
        started = SessionLog(status=SessionLog.START)
        self._write(Event(wall_time=time.time(), step=step, session_log=started))

    def describe(self, description: Iterable[Summary]) -> None:
        """Append descriptions of the run, once."""
        for summary in description:
            self._write(Event(wall_time=time.time(), summary=summary))

    def flush(self) -> None:
        """Write all appended values to the disk."""
        self._records.flush()

    def close(self) -> None:
        """Flush and close."""
        try:
            self._records.flush()
        finally:
            self._records.close()

    def _write(self, event: Event) -> None:
        self._records.write(event.SerializeToString())
