"""Samples through memory that a client and a replay server on one host share.

The client lends a segment to replay servers, and arrays lie one behind another in it. It is a memfd
(memfd_create(2)): a file without a name, which takes no room in /dev/shm, and which is gone with
the last process that has it, however that process ends.
"""

import fcntl
import hmac
import logging
import mmap
import os
import secrets
import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.net.payloads import WithPayload
from relaax.replay import replay_pb2
from relaax.replay.array_bytes import Place, address_of, extent_of, size_of
from relaax.replay.replay import NotReady
from relaax.replay.table import Sample
from relaax.replay.wire import arrays_of, fields_of, items_message, sample_in, sample_of

_log = logging.getLogger(__name__)

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

#: How the file is called in /proc; no other file is opened for a client.
FILE_NAME = "relaax-replay"

#: A segment begins with a token that its client drew, and that a server compares with the token of
#: the request. Arrays begin behind it.
TOKEN_BYTES = 16

#: Arrays begin at multiples of it: TensorFlow need not copy them.
ALIGNMENT = 64

#: Whether this system has memfd, and shows a process's files in /proc.
IS_POSSIBLE = hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")

Call: TypeAlias = Callable[[replay_pb2.Request], WithPayload[replay_pb2.Items]]

#: Smaller samples are sent: that takes no longer.
FEWEST_BYTES = 128 * 1024

#: While so many samples are in use, further ones are sent.
MOST_LENT = 8

#: A segment is larger than its first sample by this factor: samples of several servers differ from
#: one to the next.
HEADROOM = 1.25

#: For the token, and for gaps between arrays.
_PADDING = 64 * 1024

#: How often a server looks whether clients still have their segments.
CHECK_S = 2.0

#: More than so many at a time are not mapped.
MOST_SEGMENTS = 256


class Segment:
    """Memory of ``size`` bytes that this process reads, and that a server writes.

    OSError if the system does not give it. All of it is taken at once, and it cannot shrink: a
    server that writes there finds it.
    """

    def __init__(self, size: int) -> None:
        token = secrets.token_bytes(TOKEN_BYTES)
        flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
        self._descriptor = os.memfd_create(FILE_NAME, flags)
        try:
            os.posix_fallocate(self._descriptor, 0, size)
            fcntl.fcntl(self._descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
            os.pwrite(self._descriptor, token, 0)
            mapping = mmap.mmap(self._descriptor, size, prot=mmap.PROT_READ)
        except BaseException:
            self.close()
            raise
        self.memory: Bytes = np.frombuffer(mapping, np.uint8)
        self.name = replay_pb2.Segment(
            process=os.getpid(), descriptor=self._descriptor, token=token
        )

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.memory)

    def close(self) -> None:
        """Give the file up; the memory is there as long as an array lies in it."""
        os.close(self._descriptor)


class NoRoom(Exception):
    """The memory is too small."""


class Room:
    """Hands out arrays in ``memory``, behind its token."""

    def __init__(self, memory: Bytes) -> None:
        self._memory = memory
        self._end = TOKEN_BYTES

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], /) -> Array:
        """Return an array of any content, which lies elsewhere if there is no room; see Empty."""
        try:
            return self._next(shape, dtype)
        except NoRoom:
            return np.empty(shape, dtype)

    def place_of(self, array: Array) -> Place:
        """Return where ``array`` lies in the memory; it is copied there if it lies elsewhere.

        NoRoom where it does not fit.
        """
        offset = address_of(array) - address_of(self._memory)
        if 0 <= offset <= len(self._memory) - extent_of(array):
            return Place(offset, () if array.flags.c_contiguous else array.strides)
        copy = self._next(array.shape, array.dtype.newbyteorder("<"))
        copy[...] = array
        return Place(address_of(copy) - address_of(self._memory))

    def _next(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        begin = _aligned(self._end)
        end = begin + size_of([(dtype, shape)])
        if end > len(self._memory):
            raise NoRoom
        self._end = end
        return self._memory[begin:end].view(dtype).reshape(shape)


def room_for(size: int, arrays: int) -> int:
    """Return how many bytes of memory have room for so many arrays of ``size`` bytes together."""
    return TOKEN_BYTES + arrays * ALIGNMENT + size


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


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


class SharedSamples:
    """Offers memory with requests, and finds the samples there; they are sent where it is not used.

    A sample has a segment for itself as long as any of its arrays exists. For several threads.
    """

    def __init__(self, is_allowed: bool = True) -> None:
        self._is_possible = IS_POSSIBLE and is_allowed
        #: By table: how many bytes of a segment an item takes.
        self._item_bytes: dict[str, float] = {}
        self._free: deque[Segment] = deque()
        #: All open segments; each is free, or belongs to a sample or to a call.
        self._open: set[Segment] = set()
        self._is_closed = False

    def sample(self, request: replay_pb2.Request, call: Call) -> Sample:
        """Return the sample that ``call`` answers ``request`` with."""
        segment = self._segment_for(request)
        if segment is None:
            return self._sent(request, call(request))
        request.segment.CopyFrom(segment.name)
        try:
            reply = call(request)
        except NotReady:  # the server's answer: it writes no more
            self._give_back(segment)
            raise
        except BaseException:  # it may write there later
            self._close(segment)
            raise
        if reply.fields.in_segment:
            return sample_in(reply.fields, self._lent(segment))
        self._give_back(segment)
        if room_for(_size_of(reply), len(reply.fields.arrays)) <= segment.size:
            self._is_possible = False
            _log.info("samples come over the wire: the server cannot use this process' memory")
        return self._sent(request, reply)

    def close(self) -> None:
        """Give up the memory that no sample lies in; the rest follows when these are gone."""
        self._is_closed = True
        self._close_free()

    def _segment_for(self, request: replay_pb2.Request) -> Segment | None:
        """Return a free segment that is large enough; None where the sample shall be sent."""
        size = int(self._item_bytes.get(request.table, 0.0) * request.count)
        if not self._is_possible or size < FEWEST_BYTES:
            return None
        while (segment := self._next_free()) is not None:
            if segment.size >= size:
                return segment
            self._close(segment)
        return self._new(size)

    def _next_free(self) -> Segment | None:
        try:
            return self._free.popleft()
        except IndexError:
            return None

    def _new(self, size: int) -> Segment | None:
        if len(self._open) >= MOST_LENT:
            return None
        try:
            segment = Segment(int(HEADROOM * size) + _PADDING)
        except OSError as error:
            self._is_possible = False
            _log.warning("samples come over the wire: there is no memory to share: %s", error)
            return None
        self._open.add(segment)
        return segment

    def _lent(self, segment: Segment) -> Bytes:
        """Return a segment's memory; the segment is free again when no array in it exists."""
        loan = _Loan(segment.memory)
        weakref.finalize(loan, self._give_back, segment).atexit = False
        return np.asarray(loan)

    def _give_back(self, segment: Segment) -> None:
        """Take a segment back; on any thread, at any time, so that no lock may be taken."""
        self._free.append(segment)
        if self._is_closed:
            self._close_free()

    def _close_free(self) -> None:
        while (segment := self._next_free()) is not None:
            self._close(segment)

    def _close(self, segment: Segment) -> None:
        self._open.discard(segment)
        segment.close()

    def _sent(self, request: replay_pb2.Request, reply: WithPayload[replay_pb2.Items]) -> Sample:
        """Return a sample that was sent, and take note how large it is."""
        size = _size_of(reply) / max(1, request.count)
        self._item_bytes[request.table] = max(size, self._item_bytes.get(request.table, 0.0))
        return sample_of(reply)


def _size_of(reply: WithPayload[replay_pb2.Items]) -> int:
    """Return how many bytes a sample that was sent takes."""
    return sum(memoryview(part).nbytes for part in reply.payload or ())


class _Loan:
    """The memory that the arrays of a sample refer to."""

    def __init__(self, memory: Bytes) -> None:
        self.__array_interface__ = memory.__array_interface__
        self._memory = memory
