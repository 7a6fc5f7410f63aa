"""What a registry does, the thread that keeps a name alive, and waiting for names."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from relaax.errors import BridgeError, ConfigurationError

_log = logging.getLogger(__name__)

#: The time of a lease: so long a process that was killed is still known.
TTL_S = 5

#: A lease is prolonged so often within its time.
_TIMES = 3

#: How often a registry is asked by those that wait.
_LOOK_S = 0.2


class RegistryAway(BridgeError):
    """The registry does not answer now."""


class NameTaken(ConfigurationError):
    """Another process has this name, or had it until a moment ago."""


class Registry(Protocol):
    """Names and their values. Each method raises RegistryAway where it does not answer."""

    def register(self, name: str, value: str, ttl_s: int) -> int:
        """Return the lease of a new name; NameTaken if there is one, ValueError if not allowed."""

    def keep_alive(self, lease: int) -> bool:
        """Prolong a lease by its time; return False if it has ended."""

    def withdraw(self, lease: int) -> None:
        """End a lease and its name, if they are there."""

    def resolve(self, name: str) -> str | None:
        """Return the value of a name; None if nothing has it."""

    def below(self, folder: str) -> dict[str, str]:
        """Return the values of all names that begin with the segments of ``folder`` and go on."""

    def close(self) -> None:
        """Close the connection."""


class Registration:
    """A name that is kept alive by a thread until this is closed.

    Where its lease has ended, because the registry was away for long or has started again, the name
    is registered anew. At the start RegistryAway, NameTaken and ValueError are the caller's.
    """

    def __init__(self, registry: Registry, name: str, value: str, ttl_s: int = TTL_S) -> None:
        self._registry = registry
        self._entry = name, value, ttl_s
        self._lease = registry.register(*self._entry)
        self._pause_s = ttl_s / _TIMES
        self._closed = threading.Event()
        self._is_known = True
        self._thread = threading.Thread(name=f"name {name}", target=self._keep, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave the name."""
        self._closed.set()
        self._thread.join()
        with suppress(RegistryAway):  # the lease ends by itself
            self._registry.withdraw(self._lease)

    def _keep(self) -> None:
        while not self._closed.wait(self._pause_s):
            try:
                if not self._registry.keep_alive(self._lease):
                    self._lease = self._registry.register(*self._entry)
                    _log.warning("the name %s was lost, and is registered again", self._entry[0])
                self._note(None)
            except (RegistryAway, NameTaken) as error:
                self._note(error)

    def _note(self, error: Exception | None) -> None:
        """Log when the name gets lost, and when it is there again."""
        if error is not None and self._is_known:
            _log.warning("the name %s may get lost: %s", self._entry[0], error)
        elif error is None and not self._is_known:
            _log.warning("the name %s is kept again", self._entry[0])
        self._is_known = error is None


def wait_for_name(
    registry: Registry, name: str, timeout_s: float, goes_on: Callable[[], bool] = lambda: True
) -> str | None:
    """Return the value of a name once it is there; None after ``timeout_s``, or unless it goes on.

    A registry that is away is asked again.
    """
    until = time.monotonic() + timeout_s
    while True:
        with suppress(RegistryAway):
            value = registry.resolve(name)
            if value is not None:
                return value
        if time.monotonic() >= until or not goes_on():
            return None
        time.sleep(_LOOK_S)


def watch(
    registry: Registry, folder: str, known: Mapping[str, str], timeout_s: float
) -> dict[str, str]:
    """Return the names below ``folder`` once they differ from those ``known``, or after a time.

    A registry that is away is asked again; RegistryAway if it is away in the end.
    """
    until = time.monotonic() + timeout_s
    while True:
        is_last = time.monotonic() >= until
        try:
            found = registry.below(folder)
            if is_last or found != known:
                return found
        except RegistryAway:
            if is_last:
                raise
        time.sleep(_LOOK_S)
