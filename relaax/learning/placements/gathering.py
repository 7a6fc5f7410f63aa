"""Learning in a worker before the next action, with rollouts gathered before it, or not at all."""

from relaax.algorithm_base import ExperienceSink
from relaax.learning.rollouts import ROLLOUTS, RolloutBatch
from relaax.parameters.driver import Driver


class InWorker:
    """An ``ExperienceSink`` that learns before ``put`` returns.

    ``warm_up`` compiles the updates of up to ``expected`` rollouts; by default it does nothing,
    since it would hold up a worker whose rollouts may never need that.
    """

    def __init__(self, driver: Driver, expected: int = 0) -> None:
        self._driver = driver
        self._expected = expected

    def warm_up(self) -> None:
        """Compile the updates that are expected: when they come, clients wait for them."""
        if self._expected:
            self._driver.learner.prepare_updates(self._expected)

    def put(self, rollouts: RolloutBatch) -> None:
        """Learn from ``rollouts``."""
        self._driver.learn({ROLLOUTS: rollouts}, rollouts.steps, rollouts.versions)

    def close(self) -> None:
        """Store the metrics that are left."""
        self._driver.close()


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
