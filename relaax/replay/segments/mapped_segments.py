"""The memory of clients, as a replay server writes it."""

import fcntl
import hmac
import logging
import mmap
import os
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from relaax.net.payloads import WithPayload
from relaax.replay import replay_pb2
from relaax.replay.segments.segment import FILE_NAME, TOKEN_BYTES, Bytes, NoRoom, Room
from relaax.replay.table import Sample
from relaax.replay.wire import arrays_of, fields_of, items_message

_log = logging.getLogger(__name__)

#: How often a server looks whether clients still have their segments.
CHECK_S = 2.0

#: More than so many at a time are not mapped.
MOST_SEGMENTS = 256


def placed_message(sample: Sample, room: Room) -> WithPayload[replay_pb2.Items]:
    """Return a sample as a message with the places of its arrays; with them if they do not fit."""
    try:
        places = [room.place_of(array) for array in arrays_of(sample)]
    except NoRoom:
        return items_message(sample)
    fields = fields_of(sample, places)
    fields.in_segment = True
    return WithPayload(fields, None)


class UnusableSegment(Exception):
    """A client named memory that this process cannot, or must not, write."""


@dataclass(frozen=True)
class _Mapped:
    path: Path
    #: Device and inode: another file may have the path later.
    identity: tuple[int, int]
    memory: Bytes


class MappedSegments:
    """Segments of clients, mapped at their first use.

    A segment whose client has closed it, or has ended, is forgotten within ``CHECK_S``: its memory
    is the system's again then. A thread looks after that while there are segments.
    """

    def __init__(self) -> None:
        self._mapped: dict[tuple[int, int, bytes], _Mapped] = {}
        self._changed = threading.Condition()
        self._watcher: threading.Thread | None = None

    def __len__(self) -> int:
        """Return how many segments are mapped."""
        return len(self._mapped)

    def room(self, name: replay_pb2.Segment) -> Room | None:
        """Return room in a segment; None if this process cannot use it, as on another host."""
        key = (name.process, name.descriptor, name.token)
        with self._changed:
            mapped = self._mapped.get(key)
            if mapped is None:
                try:
                    mapped = self._mapped[key] = self._map(*key)
                except (OSError, ValueError, UnusableSegment) as error:
                    _log.info("samples are sent, and not put into a client's memory: %s", error)
                    return None
                self._watch()
        return Room(mapped.memory)

    def close(self) -> None:
        """Forget all segments."""
        with self._changed:
            self._mapped.clear()
            self._changed.notify_all()

    def _map(self, process: int, descriptor: int, token: bytes) -> _Mapped:
        if len(self._mapped) >= MOST_SEGMENTS:
            raise UnusableSegment(f"{MOST_SEGMENTS} segments are mapped already")
        path = Path(f"/proc/{process}/fd/{descriptor}")
        _require_name(path)  # before it is opened: to open some files has effects
        opened = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            _require_name(Path(f"/proc/self/fd/{opened}"))
            if not fcntl.fcntl(opened, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
                raise UnusableSegment(f"{path} could shrink")
            if len(token) != TOKEN_BYTES or not hmac.compare_digest(
                os.pread(opened, TOKEN_BYTES, 0), token
            ):
                raise UnusableSegment(f"{path} has another token")
            status = os.fstat(opened)
            memory = np.frombuffer(mmap.mmap(opened, status.st_size), np.uint8)
        finally:
            os.close(opened)
        return _Mapped(path, (status.st_dev, status.st_ino), memory)

    def _watch(self) -> None:
        if self._watcher is None:
            self._watcher = threading.Thread(
                target=self._forget_absent, name="replay segments", daemon=True
            )
            self._watcher.start()

    def _forget_absent(self) -> None:
        """Forget segments that clients no longer have, until there are no others."""
        with self._changed:
            while self._mapped:
                self._changed.wait(CHECK_S)
                for key in [key for key, each in self._mapped.items() if _is_absent(each)]:
                    del self._mapped[key]
            self._watcher = None


def _require_name(path: Path) -> None:
    name = os.readlink(path)
    if name != f"/memfd:{FILE_NAME} (deleted)":
        raise UnusableSegment(f"{path} is {name}, and no segment")


def _is_absent(mapped: _Mapped) -> bool:
    try:
        status = mapped.path.stat()
    except OSError:
        return True
    return (status.st_dev, status.st_ino) != mapped.identity
