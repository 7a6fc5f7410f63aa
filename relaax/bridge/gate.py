"""Keeps out calls that would change something, from the moment on when that would be lost."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from relaax.errors import ParameterServerAway


class Gate:
    """Lets calls in until it is closed. For several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._is_closed = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Be inside; ParameterServerAway where it is closed."""
        with self._changed:
            if self._is_closed:
                raise ParameterServerAway("the parameter server is about to stop")
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def close(self, deadline_s: float) -> None:
        """Let no more in, and wait until all are out, for no longer than ``deadline_s``."""
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: not self._inside, deadline_s)
