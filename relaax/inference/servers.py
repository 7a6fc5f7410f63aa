"""The addresses of inference servers: given ones, or those that have a name."""

import logging
import threading
from collections.abc import Sequence
from typing import Protocol

from relaax.names.paths import NamedPlace
from relaax.names.places import registry_at
from relaax.names.registry import CALL_ERRORS

_log = logging.getLogger(__name__)

#: How often a registry is asked for the servers of a name.
LOOK_S = 1.0

#: How long the first addresses are waited for.
_FIRST_S = 5.0


class InferenceServers(Protocol):
    """Where inference servers are now."""

    def urls(self) -> Sequence[str]:
        """Return their addresses, in the same order for all clients; it does not wait long."""

    def why_none(self) -> str:
        """Return in words why there are no addresses."""

    def look_again(self) -> None:
        """Find the addresses anew: none has answered."""

    def close(self) -> None:
        """End what looks for them."""


class GivenServers:
    """Servers whose addresses do not change."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = tuple(urls)

    def urls(self) -> Sequence[str]:
        """See InferenceServers."""
        return self._urls

    def why_none(self) -> str:
        """See InferenceServers."""
        return "no inference server was named"

    def look_again(self) -> None:
        """See InferenceServers."""

    def close(self) -> None:
        """See InferenceServers."""


class NamedServers:
    """All servers that are registered below a name; a thread asks the registry for them.

    While it is away, the addresses stay as they are.
    """

    def __init__(self, place: NamedPlace, look_s: float = LOOK_S) -> None:
        self._place = place
        self._registry = registry_at(place.registry)
        self._look_s = look_s
        self._urls: Sequence[str] = ()
        self._why = f"no inference server has the name {place}"
        self._asked, self._wake, self._is_closed = threading.Event(), threading.Event(), False
        self._thread = threading.Thread(name=f"servers of {place}", target=self._look, daemon=True)
        self._thread.start()

    def urls(self) -> Sequence[str]:
        """See InferenceServers."""
        self._asked.wait(_FIRST_S)
        return self._urls

    def why_none(self) -> str:
        """See InferenceServers."""
        return self._why

    def look_again(self) -> None:
        """See InferenceServers."""
        self._wake.set()

    def close(self) -> None:
        """See InferenceServers."""
        self._is_closed = True
        self._wake.set()
        self._thread.join()
        self._registry.close()

    def _look(self) -> None:
        while not self._is_closed:
            self._ask()
            self._asked.set()
            self._wake.wait(self._look_s)
            self._wake.clear()

    def _ask(self) -> None:
        """Take the addresses, if the registry answers."""
        try:
            found = self._registry.below(self._place.name)
        except CALL_ERRORS as error:
            if str(error) != self._why:
                _log.warning("inference servers of %s: %s", self._place, error)
            self._why = str(error)
            return
        self._why = f"no inference server has the name {self._place}"
        # One process is there twice where its lease has ended and it has registered again.
        self._urls = tuple(dict.fromkeys(found[name] for name in sorted(found)))


def servers_of(words: Sequence[str]) -> InferenceServers:
    """Return the servers of ``--inference-servers``: addresses, or one name at a registry."""
    if len(words) == 1 and "://" in words[0]:
        return NamedServers(NamedPlace.parse(words[0]))
    return GivenServers(words)
