"""Gathers rollouts until there are enough for an update."""

from relaax.algorithm_base import ExperienceSink
from relaax.learning.rollouts import RolloutBatch


class GatheringSink:
    """An ``ExperienceSink`` that hands rollouts on when at least ``least`` of them are there.

    What is gathered when it is closed is dropped.
    """

    def __init__(self, sink: ExperienceSink[RolloutBatch], least: int) -> None:
        self._sink = sink
        self._least = least
        self._gathered: list[RolloutBatch] = []

    def warm_up(self) -> None:
        """Warm up what learns."""
        self._sink.warm_up()

    def put(self, rollouts: RolloutBatch) -> None:
        """Keep ``rollouts``, or hand all on."""
        self._gathered.append(rollouts)
        if sum(batch.count for batch in self._gathered) >= self._least:
            gathered, self._gathered = self._gathered, []
            self._sink.put(RolloutBatch.concatenated(gathered))

    def close(self) -> None:
        """Close what learns."""
        self._sink.close()
