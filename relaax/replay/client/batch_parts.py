"""Parts of a batch by replay server, and the servers of its keys."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from relaax.replay.selectors import IntArray
from relaax.replay.table import Sample

Batch = TypeVar("Batch")

#: So many incarnations of a server in a row have different keys.
EPOCHS = 16


class Unfinished(Generic[Batch]):
    """Keeps drawn parts for later batches. For several threads."""

    def __init__(self, begin: Callable[[int], Batch]) -> None:
        self._begin = begin
        self._batches: deque[Batch] = deque()

    @contextmanager
    def resumed(self, count: int) -> Iterator[Batch]:
        """Yield the oldest batch, or a new one of ``count`` items; keep it if that raises."""
        try:
            batch = self._batches.popleft()
        except IndexError:
            batch = self._begin(count)
        try:
            yield batch
        except BaseException:
            self._batches.append(batch)
            raise


@dataclass(frozen=True)
class Owner:
    """Where items came from: a server of ``servers``, and which of its incarnations."""

    server: int
    epoch: int
    servers: int

    def labelled(self, keys: IntArray) -> IntArray:
        """Return keys int64 [N] that no other server's items have."""
        labelled: IntArray = (keys * self.servers + self.server) * EPOCHS + self.epoch % EPOCHS
        return labelled


@dataclass(frozen=True)
class Keys:
    """The servers' own keys, and where they came from: int64 [N] each."""

    keys: IntArray
    servers: IntArray
    epochs: IntArray


def read_keys(labelled: IntArray, servers: int) -> Keys:
    """Return the keys, servers and epochs that ``Owner.labelled`` has joined."""
    rest, epochs = np.divmod(labelled, EPOCHS)
    keys, numbers = np.divmod(rest, servers)
    return Keys(keys, numbers, epochs)


def divided(count: int, weights: npt.ArrayLike, offset: float) -> IntArray:
    """Divide ``count`` in proportion to ``weights`` [N] of a positive sum, int64 [N].

    With an ``offset`` drawn from [0, 1) each part is as large as its share in the mean, and less
    than 1 away from it (systematic sampling).
    """
    until = np.cumsum(np.asarray(weights, np.float64))
    bounds = np.floor(until * (count / until[-1]) + offset).astype(np.int64)
    bounds[-1] = count
    parts: IntArray = np.diff(np.minimum(bounds, count), prepend=0)
    return parts


def owned(sample: Sample, owner: Owner, weight: float) -> Sample:
    """Return ``owner``'s part of a batch, whose share of all weights is ``weight``."""
    return replace(
        sample,
        keys=owner.labelled(sample.keys),
        probabilities=sample.probabilities * weight,
        least_probability=sample.least_probability * weight,
    )
