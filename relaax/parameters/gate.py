"""Keeps calls out of a parameter server that is about to stop."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from relaax.errors import ParameterServerAway

#: How often the gate looks whether all calls are out. A process that is stopped and goes on later
#: has lost one of these intervals, and not the whole deadline.
_LOOK_S = 0.1


class Gate:
    """Lets calls in until it is closed. For several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._is_closed = False
        #: Whether it waits no more for calls that are inside.
        self._has_given_up = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Be inside; ParameterServerAway where the gate is closed.

        A call that leaves after ``close`` has given up raises it, too: it may not be saved.
        """
        with self._changed:
            if self._is_closed:
                raise _stops()
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                is_late = self._has_given_up
                self._inside -= 1
                self._changed.notify_all()
        if is_late:
            raise _stops()

    def close(self, deadline_s: float) -> int:
        """Let no more in, wait until all are out, and return the number of calls still inside.

        Each call that leaves may prolong the deadline by a tenth of a second.
        """
        left_s = deadline_s
        with self._changed:
            self._is_closed = True
            while self._inside and left_s > 0:
                if not self._changed.wait(min(_LOOK_S, left_s)):
                    left_s -= _LOOK_S
            self._has_given_up = self._inside > 0
            return self._inside


def _stops() -> ParameterServerAway:
    return ParameterServerAway("the parameter server is about to stop")
