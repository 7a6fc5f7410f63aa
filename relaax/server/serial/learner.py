"""A learner in the same process: it takes its steps when experience comes."""

import itertools
from collections import deque

import numpy as np

from relaax.algorithm_base import BridgeBase
from relaax.errors import ConfigurationError
from relaax.replay.replay import NotReady, Replay
from relaax.replay.step_batch import StepBatch
from relaax.server.learner.loop import LearnerLoop

#: The replay's name for the one that writes.
_NAME = "this process"


class SerialLearner:
    """An ``ExperienceSink`` that stores steps in ``replay``, counts them, and learns from them.

    After each delivery the learner takes as many steps as the replay lets it, or one where nothing
    but the learner's own speed limits it: ``has_ratio`` says which.
    """

    def __init__(
        self, loop: LearnerLoop, replay: Replay, bridge: BridgeBase, has_ratio: bool
    ) -> None:
        self._loop = loop
        self._replay = replay
        self._bridge = bridge
        self._has_ratio = has_ratio
        self._counted = replay.actions
        #: By slot: the number of the step that comes next.
        self._next: dict[int, int] = {}
        #: Steps of one slot each that have not been stored.
        self._waiting: deque[tuple[int, StepBatch]] = deque()
        mistakes = replay.open_writer(_NAME, replay.schema)
        if mistakes:
            raise ConfigurationError("; ".join(mistakes))
        loop.begin()

    def warm_up(self) -> None:
        """Do nothing."""

    def put(self, steps: StepBatch) -> None:
        """Store steps, and learn.

        What the tables do not take yet waits, in its order, until they have been drawn from.
        """
        for slot in np.unique(steps.slots).tolist():
            self._waiting.append((slot, steps.chosen(steps.slots == slot)))
        self._store()
        limit = None if self._has_ratio else 1
        for _ in itertools.islice(itertools.count(), limit):
            if not self._loop.take_step():
                break
            self._store()

    def close(self) -> None:
        """Do nothing: who made the learner saves it."""

    def _store(self) -> None:
        """Store what waits, as far as there is room, and count it."""
        while self._waiting:
            slot, steps = self._waiting[0]
            rows = {name: steps.columns[name] for name in self._replay.schema.columns}
            first = self._next.get(slot, 0)
            try:
                self._next[slot] = self._replay.append(_NAME, slot, first, rows, steps.flags)
            except NotReady:
                if not self._loop.take_step():  # which also lets go of what was drawn before
                    break
            else:
                self._waiting.popleft()
        self._bridge.add(self._replay.actions - self._counted)
        self._counted = self._replay.actions
