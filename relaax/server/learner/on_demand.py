"""Batches that are drawn when they are asked for."""

from collections.abc import Callable
from typing import Generic, TypeVar

Batch = TypeVar("Batch")


class OnDemand(Generic[Batch]):
    """Has the methods of a ``Prefetcher``, and calls ``fetch`` no earlier than ``get`` is called.

    ``fetch`` returns None where there is nothing yet, after it has waited for a while.
    """

    def __init__(self, fetch: Callable[[], Batch | None]) -> None:
        self._fetch = fetch

    @property
    def depth(self) -> int:
        """How many batches are ready: none."""
        return 0

    def get(self, timeout_s: float) -> Batch | None:
        """Return what ``fetch`` returns, which waits as long as it does."""
        return self._fetch()

    def close(self) -> None:
        """Do nothing."""
