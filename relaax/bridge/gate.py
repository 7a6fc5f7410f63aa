"""Keeps calls out of a parameter server that is about to stop."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from relaax.errors import ParameterServerAway

_IT_STOPS = "the parameter server is about to stop"

#: The time that it waits is divided into so many parts. A process that is stopped meanwhile, and
#: goes on later, has lost one of them, and not all.
_PARTS = 10


class Gate:
    """Lets calls in until it is closed. For several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._is_closed = False
        #: Whether it waits no more for those that are inside.
        self._has_given_up = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Be inside; ParameterServerAway where it is closed.

        Also for one that leaves when nobody waits for it any more: what it has changed may not be
        saved.
        """
        with self._changed:
            if self._is_closed:
                raise ParameterServerAway(_IT_STOPS)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()
        if self._has_given_up:
            raise ParameterServerAway(_IT_STOPS)

    def close(self, deadline_s: float) -> None:
        """Let no more in, and wait until all are out, for no longer than ``deadline_s``."""
        left = _PARTS
        with self._changed:
            self._is_closed = True
            while self._inside and left:
                if not self._changed.wait(deadline_s / _PARTS):
                    left -= 1
            self._has_given_up = True
