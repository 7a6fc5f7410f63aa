"""What stands before a learner in a worker, or in its place."""

from relaax.algorithm_base import ExperienceSink
from relaax.learning.rollouts import RolloutBatch


class Gathering:
    """An ``ExperienceSink`` that hands rollouts on when at least ``least`` of them are there.

    Rollouts of other observations, floats after bytes for example, are handed on apart. Rollouts
    that are gathered when it is closed are dropped.
    """

    def __init__(self, sink: ExperienceSink[RolloutBatch], least: int) -> None:
        self._sink = sink
        self._least = least
        self._gathered: list[RolloutBatch] = []

    def warm_up(self) -> None:
        """Warm up the learner."""
        self._sink.warm_up()

    def put(self, rollouts: RolloutBatch) -> None:
        """Keep ``rollouts``, or hand all on."""
        if self._gathered and self._gathered[0].kind != rollouts.kind:
            self._hand_on()
        self._gathered.append(rollouts)
        if sum(batch.count for batch in self._gathered) >= self._least:
            self._hand_on()

    def close(self) -> None:
        """Close the learner."""
        self._sink.close()

    def _hand_on(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._sink.put(RolloutBatch.concatenated(gathered))
