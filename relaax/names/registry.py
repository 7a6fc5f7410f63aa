"""What a registry does, and the thread that keeps a name alive."""

import logging
import threading
from contextlib import suppress
from typing import Protocol

from relaax.errors import BridgeError, ConfigurationError, RelaaxError
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: The time of a lease: so long a process that was killed is still known.
TTL_S = 5

#: A lease is prolonged so often within its time.
_TIMES = 3

#: Errors of a registry's calls; the last two also for an answer in an unknown form.
CALL_ERRORS = (RelaaxError, ValueError, KeyError)


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
    is registered anew. An error of the registry is logged, and the next call made in time.
    At the start RegistryAway, NameTaken and ValueError are the caller's.
    """

    def __init__(self, registry: Registry, name: str, value: str, ttl_s: int = TTL_S) -> None:
        self._registry = registry
        self._entry = name, value, ttl_s
        self._lease = registry.register(*self._entry)
        self._pause_s = ttl_s / _TIMES
        self._closed = threading.Event()
        self._thread = threading.Thread(name=f"name {name}", target=self._keep, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave the name."""
        self._closed.set()
        self._thread.join()
        with suppress(*CALL_ERRORS):  # the lease ends by itself
            self._registry.withdraw(self._lease)

    def _keep(self) -> None:
        name, complaint = self._entry[0], RepeatedWarning(_log)
        while not self._closed.wait(self._pause_s):
            try:
                if not self._registry.keep_alive(self._lease):
                    self._lease = self._registry.register(*self._entry)
                    _log.warning("the name %s was lost, and is registered again", name)
            except CALL_ERRORS as error:  # a registry that is mended has the name again
                complaint.say(f"the name {name} may get lost: {error}")
            else:
                if complaint.forget():
                    _log.warning("the name %s is kept again", name)
