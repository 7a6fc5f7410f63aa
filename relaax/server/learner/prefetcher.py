"""Batches that are ready before they are asked for."""

import contextlib
import queue
import threading
from collections.abc import Callable
from time import monotonic
from typing import Generic, TypeVar

Batch = TypeVar("Batch")

#: How long a thread waits before it looks whether it should end, or the others have.
_POLL_S = 0.2

#: How long ``close`` waits for each thread.
_CLOSE_S = 5.0


class Prefetcher(Generic[Batch]):
    """Calls ``fetch`` on threads of its own, and holds at most ``depth`` batches ready.

    ``fetch`` returns None where there is nothing yet, after it has waited for a while. What it
    raises ends all threads, and is raised by the next ``get``. It owns its threads until it is
    closed.
    """

    def __init__(self, fetch: Callable[[], Batch | None], depth: int, threads: int = 1) -> None:
        if min(depth, threads) < 1:
            raise ValueError(f"depth and threads must be at least 1, are {depth} and {threads}")
        self._fetch = fetch
        self._ready: queue.Queue[Batch] = queue.Queue(depth)
        self._closes = threading.Event()
        self._error: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._run, name=f"prefetch-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def depth(self) -> int:
        """How many batches are ready now."""
        return self._ready.qsize()

    def get(self, timeout_s: float) -> Batch | None:
        """Return the next batch; None if none is ready in time. Raise what ended the threads."""
        deadline = monotonic() + timeout_s
        while True:
            left = deadline - monotonic()
            with contextlib.suppress(queue.Empty):
                return self._ready.get(timeout=max(0.0, min(left, _POLL_S)))
            if self._error is not None:
                raise self._error
            if left <= 0:
                return None

    def close(self) -> None:
        """End the threads and drop what is ready."""
        self._closes.set()
        for thread in self._threads:
            thread.join(_CLOSE_S)

    def _run(self) -> None:
        try:
            while not self._closes.is_set():
                batch = self._fetch()
                if batch is not None:
                    self._put(batch)
        except Exception as error:  # raised where it can be acted on: by the next get
            self._error = error
            self._closes.set()

    def _put(self, batch: Batch) -> None:
        is_put = False
        while not is_put and not self._closes.is_set():
            with contextlib.suppress(queue.Full):
                self._ready.put(batch, timeout=_POLL_S)
                is_put = True
