"""Batches that had to be given up before they were whole."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Batch = TypeVar("Batch")


class Unfinished(Generic[Batch]):
    """Keeps what was drawn of such batches for those that follow. For several threads."""

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
