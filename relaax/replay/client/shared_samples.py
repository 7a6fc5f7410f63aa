"""Samples of a server on the same host, put into this process' memory."""

import logging
import weakref
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from relaax.net.payloads import WithPayload
from relaax.replay import replay_pb2
from relaax.replay.replay import NotReady
from relaax.replay.segments import IS_POSSIBLE, Bytes, Segment, room_for
from relaax.replay.table import Sample
from relaax.replay.wire import sample_in, sample_of

_log = logging.getLogger(__name__)

Call: TypeAlias = Callable[[replay_pb2.Request], WithPayload[replay_pb2.Items]]

#: Smaller samples are sent: that takes no longer.
FEWEST_BYTES = 128 * 1024

#: While so many samples are in use, further ones are sent.
MOST_SEGMENTS = 8

#: A segment is larger than its first sample by this factor: samples of several servers differ from
#: one to the next.
HEADROOM = 1.25

#: For the token, and for gaps between arrays.
_PADDING = 64 * 1024


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
        if len(self._open) >= MOST_SEGMENTS:
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
