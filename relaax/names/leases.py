"""Names in the memory of a server."""

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from relaax.names.paths import checked_name, checked_ttl, checked_value
from relaax.names.registry import NameTaken

#: So many names there may be.
MOST_NAMES = 65_536


class TooManyNames(Exception):
    """There is no room for a further name."""


@dataclass
class _Lease:
    name: str
    value: str
    ttl_s: int
    ends_at: float


class Leases:
    """Names and their leases: a registry for the threads of this process.

    A lease that has ended is forgotten when the next call comes. After a restart all are gone:
    processes that still live register again.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, most_names: int = MOST_NAMES
    ) -> None:
        self._clock = clock
        self._most_names = most_names
        self._lock = threading.Lock()
        self._leases: dict[int, _Lease] = {}
        self._by_name: dict[str, int] = {}

    def register(self, name: str, value: str, ttl_s: int) -> int:
        """See Registry; TooManyNames without room."""
        lease = _Lease(checked_name(name), checked_value(value), checked_ttl(ttl_s), 0.0)
        with self._lock:
            self._forget()
            if name in self._by_name:
                raise NameTaken(f"the name {name} is taken")
            if len(self._by_name) >= self._most_names:
                raise TooManyNames(f"there are {self._most_names} names already")
            number = secrets.randbits(63) + 1
            lease.ends_at = self._clock() + ttl_s
            self._leases[number], self._by_name[name] = lease, number
            return number

    def keep_alive(self, lease: int) -> bool:
        """See Registry."""
        with self._lock:
            self._forget()
            found = self._leases.get(lease)
            if found is not None:
                found.ends_at = self._clock() + found.ttl_s
            return found is not None

    def withdraw(self, lease: int) -> None:
        """See Registry."""
        with self._lock:
            self._drop(lease)

    def resolve(self, name: str) -> str | None:
        """See Registry."""
        with self._lock:
            self._forget()
            number = self._by_name.get(name)
            return None if number is None else self._leases[number].value

    def below(self, folder: str) -> dict[str, str]:
        """See Registry."""
        beginning = f"{checked_name(folder)}/"
        with self._lock:
            self._forget()
            return {
                each.name: each.value
                for each in self._leases.values()
                if each.name.startswith(beginning)
            }

    def close(self) -> None:
        """See Registry; there is no connection."""

    def _forget(self) -> None:
        now = self._clock()
        for number in [number for number, each in self._leases.items() if each.ends_at <= now]:
            self._drop(number)

    def _drop(self, lease: int) -> None:
        found = self._leases.pop(lease, None)
        if found is not None:
            del self._by_name[found.name]
