"""The slots of a worker's environments, and their places among all that train."""

from collections.abc import Callable
from functools import partial

import numpy as np

from relaax.algorithm_base import EnvironmentInfo
from relaax.protocol.binary import Hello
from relaax.server.rlx_server.tally import WorkerRow
from relaax.server.rlx_server.tally.table import SlotPool
from relaax.server.rlx_server.worker.settings import seed_after
from relaax.steps import IntArray


class Environments:
    """Numbers environments: a slot in this worker, and a place among all that train.

    Without a ``row`` they do not train: then an environment's slot is its place.
    """

    def __init__(self, row: WorkerRow | None) -> None:
        self._row = row
        self._pool = SlotPool()
        #: How many environments there are.
        self.count = 0
        #: How many there have been.
        self._introductions = 0
        #: By slot; places are numbers of the row, which knows those in the training.
        self._places: IntArray = np.zeros(0, np.int64)

    def take(self, count: int) -> IntArray:
        """Return slots [count] that no environment has."""
        slots = self._pool.take(count)
        self.count += count
        return slots

    def give_back(self, slots: IntArray) -> None:
        """Free ``slots``, and their places."""
        self._pool.give_back(slots)
        self.count -= len(slots)
        if self._row is not None and len(self._places) > slots.max():  # else none was given
            self._row.places.give_back(self._places[slots])

    def introduced(self, slots: IntArray, hello: Hello, first_seed: int) -> list[EnvironmentInfo]:
        """Return what agents may know of the environments of a client, and give these places."""
        first = self._introductions
        self._introductions += hello.environments
        return [
            EnvironmentInfo(
                name=hello.environment,
                observation_space=hello.observation_space,
                action_space=hello.action_space,
                number=number,
                seed=seed_after(first_seed, first + number),
                place=place,
            )
            for number, place in enumerate(self._placed(slots))
        ]

    def _placed(self, slots: IntArray) -> list[Callable[[], int]]:
        """Return, for each environment, a function that returns its place in the training."""
        row = self._row
        if row is None:
            return [lambda slot=slot: slot for slot in slots.tolist()]  # type: ignore[misc]
        places = row.places.take(len(slots))
        size = max(int(slots.max()) + 1, len(self._places))
        self._places = np.concatenate([self._places, np.zeros(size - len(self._places), np.int64)])
        self._places[slots] = places
        return [partial(row.places.in_training, place) for place in places.tolist()]
