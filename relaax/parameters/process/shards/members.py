"""The other shards, as the first one knows them."""

from dataclasses import dataclass, field
from enum import Enum

from relaax.algorithm_base import Shard
from relaax.errors import CheckpointError, RelaaxError


class NotWhole(RelaaxError):
    """A shard is away, or has not begun yet: nothing is applied until it is there."""


class Said(Enum):
    """What another shard reports."""

    BEGUN = "begun"
    SAVED = "saved"
    FAILED = "failed"
    #: It is about to end: all should save before.
    LEAVES = "leaves"
    #: It cannot begin, since its part of the checkpoint is not whole.
    DAMAGED = "damaged"


@dataclass(frozen=True)
class MemberInfo:
    """Another shard, as it presents itself."""

    shard: Shard
    address: str
    #: Of the whole vector.
    size: int
    #: What it has begun with, 0 for nothing, and how many orders it has followed since.
    incarnation: int
    position: int


@dataclass
class _Member:
    """Another shard, as it is known here."""

    address: str
    #: Which of its connections is the present one.
    connection: int = 0
    is_connected: bool = False
    has_begun: bool = False
    #: Whether it is about to end.
    leaves: bool = False
    #: Whether it has gone, or was about to, and is not back.
    was_away: bool = False
    #: The sets of which it has saved its part, or why not.
    saved: dict[str, str | None] = field(default_factory=dict)


class Members:
    """All shards but the first, which ``first`` is; not thread-safe."""

    def __init__(self, first: Shard) -> None:
        self._count = first.count
        self._members: dict[int, _Member] = {}

    def connect(self, info: MemberInfo, has_begun: bool) -> int:
        """Take note of a connection, and return its number; earlier ones of the shard have ended.

        ``has_begun`` says whether the shard has what all have begun with.
        """
        member = self._members.setdefault(info.shard.index, _Member(info.address))
        member.address = info.address
        member.connection += 1
        member.is_connected, member.has_begun, member.leaves = True, has_begun, False
        return member.connection

    def note_back(self, index: int) -> bool:
        """Take note that a shard is there; return whether it had gone, or was about to."""
        member = self._members[index]
        was_away, member.was_away = member.was_away, False
        return was_away

    def is_present(self, index: int, connection: int) -> bool:
        """Return whether a connection has not ended."""
        member = self._members[index]
        return member.is_connected and member.connection == connection

    def disconnect(self, index: int, connection: int) -> None:
        """Take note that a connection has ended."""
        if self.is_present(index, connection):
            self._members[index].is_connected = False
            self._members[index].was_away = True

    def begin_anew(self) -> None:
        """Expect all to begin with something else."""
        for member in self._members.values():
            member.has_begun = False

    def note_begun(self, index: int) -> None:
        """Take note that a shard has what all have begun with."""
        if index in self._members:
            self._members[index].has_begun = True

    def let_leave(self, index: int) -> None:
        """Take note that a shard is about to end."""
        if index in self._members:
            self._members[index].leaves = self._members[index].was_away = True

    def leaves(self, index: int) -> bool:
        """Return whether a shard is about to end."""
        return index in self._members and self._members[index].leaves

    def dismiss(self) -> None:
        """End the connections of those that are about to end."""
        for member in self._members.values():
            member.is_connected = member.is_connected and not member.leaves

    def note_saved(self, index: int, set_id: str, failure: str | None = None) -> None:
        """Take note that a shard has saved its part of a set, or why it could not."""
        if index in self._members:
            self._members[index].saved[set_id] = failure

    def have_saved(self, set_id: str) -> bool:
        """Return whether all have saved their parts of a set; CheckpointError if one could not."""
        parts = [member.saved.get(set_id, "not yet") for member in self._members.values()]
        for index, member in self._members.items():
            failure = member.saved.get(set_id)
            if failure is not None:
                raise CheckpointError(f"nothing is saved: {self.name(index)}: {failure}")
        return all(part is None for part in parts)

    def forget_sets(self) -> None:
        """Forget who has saved what."""
        for member in self._members.values():
            member.saved.clear()

    def missing(self) -> str:
        """Return in words which shard is away, or has not begun; empty if none is."""
        for index in range(2, self._count + 1):
            member = self._members.get(index)
            if member is None or not member.is_connected or not member.has_begun:
                return self.name(index)
        return ""

    def require_whole(self) -> None:
        """Raise NotWhole if a shard is away, or about to end: what is applied would be lost."""
        missing = self.missing()
        if missing:
            raise NotWhole(f"{missing} is away, or has not begun yet")
        for index, member in self._members.items():
            if member.leaves:
                raise NotWhole(f"{self.name(index)} is about to end")

    def name(self, index: int) -> str:
        """Return which shard it is, and where, in words."""
        member = self._members.get(index)
        where = f" at {member.address}" if member else ""
        return f"shard {Shard(index, self._count)}{where}"
