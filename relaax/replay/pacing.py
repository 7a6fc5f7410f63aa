"""Admission of rollouts: acting may be at most so many versions ahead of learning."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.selectors import IntArray
from relaax.replay.storage import Empty
from relaax.replay.table import Sample, Table


class Pacing:
    """Says which rollouts may be begun, and when a batch may be drawn.

    Let the next batch be drawn at ``version``. A rollout may be begun with the parameters b if the
    rollouts that wait, those under way and this one fit: in the order of their versions each batch
    of them is drawn at the next version, and none is older by more than ``staleness`` then. For
    rollouts of the newest version that is AReaL's rule (arXiv 2505.24298, section 5.1): there are
    at most (staleness + version + 1) * batch rollouts so far. A batch is drawn when it leaves such
    rollouts behind; until then the learner waits for older ones that are under way.

    A process that waits keeps all of its environments waiting. Where learning could not go on
    without the rollouts that they have under way, more are admitted, and counted in ``exceeded``.
    """

    def __init__(self, staleness: int, batch: int) -> None:
        self.staleness = staleness
        self.batch = batch
        #: Of the parameters that learn from the next batch.
        self.version = 0
        #: How many rollouts were begun though they did not fit, and how many versions the oldest
        #: one that was drawn was behind.
        self.exceeded = self.most_behind = 0
        #: By slot: the versions of rollouts under way, in their order, and the writer.
        self._running: dict[int, deque[int]] = {}
        self._writers: dict[int, str] = {}
        #: Writers that wait.
        self._waiting: set[str] = set()

    @property
    def running(self) -> list[int]:
        """The versions of all rollouts that are under way."""
        return [version for versions in self._running.values() for version in versions]

    def keeps_waiting(
        self,
        writer: str,
        slots: Sequence[int],
        version: int,
        complete: Sequence[int],
        *,
        is_learning: bool,
        has_delivered: bool,
    ) -> str:
        """Admit a rollout of each slot, begun with ``version``, or return why not yet.

        ``complete``: the versions of complete rollouts, which no batch has had. While
        ``is_learning``, the next batch is drawn one version later.
        """
        begun = [*complete, *self.running, *[version] * len(slots)]
        # Older rollouts keep their places, also those that are too old already.
        if not self._fits(self.version + is_learning, begun, version):
            can_wait = is_learning or not has_delivered or version < self.version
            if can_wait or self._goes_on_without(writer, complete):
                if has_delivered:  # what it has begun will be complete soon
                    self._waiting.add(writer)
                return self._why(version, len(complete))
            self.exceeded += len(slots)
        self._waiting.discard(writer)
        for slot in slots:
            self._running.setdefault(slot, deque()).append(version)
            self._writers[slot] = writer
        return ""

    def holds_back(self, complete: Sequence[int]) -> str:
        """Return for which rollouts a batch of the ``complete`` ones waits; "" for none."""
        if not self._waits_for(complete, self.running):
            return ""
        oldest = min(self.running)
        return (
            f"acting is behind learning: a rollout that was begun with version {oldest} is not "
            f"complete, and it must be learnt from before it is more than {self.staleness} "
            f"versions old (max_staleness); the next batch is drawn at {self.version}"
        )

    def completed(self, slot: int) -> int | None:
        """Take note that a rollout is complete; return its version, None if it is not known."""
        versions = self._running.get(slot)
        if not versions:
            return None
        version = versions.popleft()
        if not versions:
            self.left(slot)
        return version

    def left(self, slot: int) -> None:
        """Forget the rollouts under way of a slot: they will never be complete."""
        self._running.pop(slot, None)
        self._writers.pop(slot, None)

    def forget(self, writer: str) -> None:
        """Forget that a writer waits: it has ended."""
        self._waiting.discard(writer)

    def _why(self, version: int, complete: int) -> str:
        return (
            f"learning is behind acting: {complete:,} rollouts are complete and "
            f"{len(self.running):,} under way; one begun with version {version} could be more than "
            f"{self.staleness} versions old when it is learnt from (max_staleness); the next batch "
            f"is drawn at {self.version}"
        )

    def _goes_on_without(self, writer: str, complete: Sequence[int]) -> bool:
        """Return whether a batch can be drawn though ``writer``, and all that wait, go on waiting.

        Others complete the rollouts that they have under way.
        """
        stands = self._waiting | {writer}
        free, held = list(complete), list[int]()
        for slot, versions in self._running.items():
            (held if self._writers[slot] in stands else free).extend(versions)
        return len(free) >= self.batch and not self._waits_for(free, held)

    def _waits_for(self, complete: Sequence[int], others: Sequence[int]) -> bool:
        """Return whether a batch of ``complete`` would make some of ``others`` too old.

        Not so where it would be the same batch if those were complete.
        """
        chosen = sorted(complete)
        left = sorted([*chosen[self.batch :], *others])
        if self._fits(self.version + 1, left):
            return False
        return left != sorted([*complete, *others])[self.batch :]

    def _fits(self, first: int, versions: Iterable[int], least: int = 0) -> bool:
        """Return whether rollouts of ``versions``, if at ``least`` this, are young when drawn.

        All are drawn in batches, from that at the version ``first`` on.
        """
        return all(
            first + place // self.batch - version <= self.staleness
            for place, version in enumerate(sorted(versions))
            if version >= least
        )


class PacedTable(Table):
    """A table of rollouts that are begun when they are admitted; each is drawn once.

    The oldest parameters are learnt from first. ``column`` has the version of each step.
    """

    def __init__(
        self, *args: Any, staleness: int, batch: int, column: str = "version", **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self.pacing = Pacing(staleness, batch)
        self._column = column
        #: By row of complete items, in their order: the version of the first action.
        self._begun: dict[int, int] = {}

    def keeps_waiting(
        self, writer: str, slots: Sequence[int], version: int, *, has_delivered: bool
    ) -> str:
        """Admit a rollout of each slot, or return why not yet; see ``Pacing``."""
        return self.pacing.keeps_waiting(
            writer,
            slots,
            version,
            list(self._begun.values()),
            is_learning=self._held > 0,
            has_delivered=has_delivered,
        )

    def at_version(self, version: int) -> None:
        """Note which parameters the next batch is learnt from with."""
        self.let_go()
        self.pacing.version = version

    def keeps_out(self, slot: int, flags: npt.NDArray[np.uint8]) -> str:
        """See Table: what was begun is taken."""
        return ""

    def holds_back(self, count: int, charge: int | None = None) -> str:
        """See Table; a batch waits for rollouts that would be too old for the next one."""
        why = super().holds_back(count, charge)
        if why:
            under_way = len(self.pacing.running)
            return f"{why}; {under_way:,} rollouts are under way" if self.pacing.running else why
        return self.pacing.holds_back(list(self._begun.values()))

    def insert(self, items: IntArray) -> None:
        """See Table."""
        for row in items.tolist():
            known = self.pacing.completed(int(self._storage.slots[row]))
            self._begun[row] = self._version_of(row) if known is None else known
        super().insert(items)

    def draw(self, count: int, charge: int | None = None, *, empty: Empty = np.empty) -> Sample:
        """See Table."""
        rows = np.array(sorted(self._begun, key=self._begun.__getitem__), np.int64)
        self._selector.remove(rows)
        self._selector.add(rows)
        sample = super().draw(count, charge, empty=empty)
        for row in (sample.keys % self._storage.capacity).tolist():
            behind = self.pacing.version - self._begun.pop(row)
            self.pacing.most_behind = max(self.pacing.most_behind, behind)
        return sample

    def left(self, slot: int) -> None:
        """See Table."""
        super().left(slot)
        self.pacing.left(slot)

    def evicted(self, rows: IntArray) -> None:
        """See Table."""
        super().evicted(rows)
        for row in rows.tolist():
            self._begun.pop(row, None)

    def restore(self, contents: Mapping[str, npt.NDArray[Any]]) -> None:
        """See Table; what was under way at the save is not waited for."""
        super().restore(contents)
        rows = contents["selector/rows"].tolist()
        self._begun = {row: self._version_of(row) for row in rows}

    def _version_of(self, row: int) -> int:
        return int(self._storage.columns[self._column][row])
