"""A stop that signals ask for."""

import queue
import signal
from typing import Protocol


class Stop(Protocol):
    """The flag that ends a loop."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, at most ``timeout`` seconds; return whether it is."""


class StopSignal:
    """Set by SIGINT and SIGTERM from now on, while the main thread may be waiting for it.

    Not a ``threading.Event``: a handler runs in the main thread, between any two of its steps.
    Where it interrupts ``Event.wait`` in the moment in which that holds the event's lock, ``set``
    waits for the same lock, and for ever. A ``SimpleQueue`` may be put to anywhere.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, frame: self.set())

    def set(self) -> None:
        """Ask to stop."""
        self._is_set = True
        self._woken.put(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, at most ``timeout`` seconds; return whether it is."""
        if not self._is_set:
            try:
                self._woken.get(timeout=timeout)
            except queue.Empty:
                return self._is_set
        return True
