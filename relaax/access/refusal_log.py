"""Lines of the log about callers that are refused: few, however many call, and none is forgotten.

The first of an address is written at once, and what follows is summed up: a line says how many
times it came again. A few addresses have lines of their own, and all others have one together.
"""

import logging
import mmap
import secrets
import struct
import time
from collections.abc import Callable, Iterator
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple

from relaax.access.refusal_limit import network_of

_log = logging.getLogger(__name__)

#: What an address shows again is summed up in a line every so many seconds.
EVERY_S = 10.0

#: So many addresses, at one port each, have lines of their own at a time, of each kind.
MOST_ADDRESSES = 10

#: What is remembered of them: a digest, when a line may be written, how many were left out, and how
#: long the text of the last one of these is, which follows.
_HEAD = struct.Struct("=QdQH")
_SLOT_BYTES = 512
_TEXT_BYTES = _SLOT_BYTES - _HEAD.size


class Kind(IntEnum):
    """What is wrong with a caller. The lines of one kind keep no other silent."""

    NOTHING_SHOWN = 0
    WRONG_TOKEN = 1
    OVER_LIMIT = 2


class _Line(NamedTuple):
    """A line that is due: how many came, and the last one of them."""

    times: int
    port: str
    address: str
    reason: str
    #: Whether it is of all addresses that have no line of their own.
    is_common: bool
    #: Whether it comes later than what it tells of.
    is_late: bool

    def write(self) -> None:
        """Log it. The lock is free by now: whoever reads the log may be slow."""
        times = "once" if self.times == 1 else f"{self.times} times"
        if self.is_common:
            _log.warning(
                "refused %s since the last such message, from more addresses than have lines "
                "of their own; the last one at the %s port, from %s: %s",
                times,
                self.port,
                self.address,
                self.reason,
            )
            return
        more = f" ({times} since the last such message)" if self.times > 1 or self.is_late else ""
        why = self.reason + more
        _log.warning("refused at the %s port, from %s: %s", self.port, self.address, why)


class RefusalLog:
    """Writes of each kind at most ``MOST_ADDRESSES`` + 1 lines in ``EVERY_S`` seconds.

    For several threads, and for processes that are forked later: all of them write so few together,
    and each of them says what any has left out, also one that has ended.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        from relaax.forked_memory import ForkedMemory  # of Linux, and clients import this module

        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._memory = ForkedMemory(
            "relaax-refusal-log", len(Kind) * (MOST_ADDRESSES + 1) * _SLOT_BYTES
        )

    def add(self, kind: Kind, port: str, address: str, reason: str) -> None:
        """Log that a caller is refused, or take note of it until a line may be written."""
        digest = self._digest(f"{port} {network_of(address)} {reason}")
        with self._memory.alone():
            slot = self._slot(kind, digest)
            slot.take_note(port, address, reason)
            line = slot.line(self._clock(), self._clock() + EVERY_S)
            slot.store()
        if line is not None:
            line.write()

    def say_left_out(self, *, ends: bool = False) -> None:
        """Log what was left out and may be written by now, or all of it where a process ends.

        Whoever calls this once a second leaves out nothing for longer than ``EVERY_S``.
        """
        lines = []
        with self._memory.alone():
            now = float("inf") if ends else self._clock()
            for slot in (slot for kind in Kind for slot in self._slots_of(kind)):
                line = slot.line(now, self._clock() + EVERY_S)
                if line is not None:
                    slot.store()
                    lines.append(line)
        for line in lines:
            line.write()

    def _slot(self, kind: Kind, digest: int) -> "_Slot":
        """Return where an address is remembered; what all others share if there is no room."""
        slots = list(self._slots_of(kind))
        for slot in slots[1:]:
            if slot.digest == digest:
                return slot
        now = self._clock()
        for slot in slots[1:]:
            if not slot.left_out and now >= slot.due:
                slot.digest = digest
                return slot
        return slots[0]

    def _slots_of(self, kind: Kind) -> "Iterator[_Slot]":
        """Yield the slots of a kind, the one that many addresses share first."""
        begin = kind * (MOST_ADDRESSES + 1) * _SLOT_BYTES
        for number in range(MOST_ADDRESSES + 1):
            yield _Slot(self._memory.bytes, begin + number * _SLOT_BYTES, is_common=number == 0)

    def _digest(self, name: str) -> int:
        """Return what stands for a name, as no stranger can foresee."""
        digest = blake2b(name.encode(errors="replace"), digest_size=8, key=self._key).digest()
        return int.from_bytes(digest, "little")


class _Slot:
    """What is remembered of an address; changes are shared by ``store``."""

    def __init__(self, memory: mmap.mmap, begin: int, *, is_common: bool) -> None:
        self._memory = memory
        self._begin = begin
        self._is_common = is_common
        self._text: bytes | None = None
        self.digest, self.due, self.left_out, self._length = _HEAD.unpack_from(memory, begin)

    def take_note(self, port: str, address: str, reason: str) -> None:
        """Add a caller that is refused."""
        self.left_out += 1
        self._text = "\0".join((port, address, reason)).encode(errors="replace")[:_TEXT_BYTES]
        self._length = len(self._text)

    def line(self, now: float, next_due: float) -> _Line | None:
        """Return what is to be written ``now``, if anything is; then nothing is left out."""
        if not self.left_out or now < self.due:
            return None
        text = self._text
        if text is None:
            begin = self._begin + _HEAD.size
            text = self._memory[begin : begin + self._length]
        port, address, reason = (*text.decode(errors="replace").split("\0", 2), "", "")[:3]
        line = _Line(self.left_out, port, address, reason, self._is_common, self._text is None)
        self.left_out, self.due = 0, next_due
        return line

    def store(self) -> None:
        """Let other processes see this."""
        begin = self._begin + _HEAD.size
        if self._text is not None:
            self._memory[begin : begin + self._length] = self._text
        _HEAD.pack_into(
            self._memory, self._begin, self.digest, self.due, self.left_out, self._length
        )
