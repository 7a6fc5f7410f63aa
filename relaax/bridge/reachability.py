"""Says in the log why a server is not reached: gRPC does not say it of calls that wait."""

import logging
import threading
import time

from relaax.access import current_access
from relaax.access.reach import why_not_reached
from relaax.address import Address

_log = logging.getLogger(__name__)

#: How often it is looked, at most.
EVERY_S = 10.0

#: An outage is a new one when no call has failed for so many times as long.
NEW_AFTER = 3

#: How long one look takes.
LOOK_S = 2.0


class Reachability:
    """Looks at the server at ``url``, as this process reaches it, when a call has failed.

    Each look is a connection of its own, on a thread that ends with it: no call waits for it. For
    several threads. A socket's path is not looked at.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._address = None if url.startswith("unix:") else Address.parse(url)
        self._tls = current_access().tls
        self._lock = threading.Lock()
        self._looked_at = float("-inf")
        self._cause: str | None = None
        #: The cause that was logged last in this outage.
        self._said: str | None = None

    @property
    def cause(self) -> str | None:
        """What the last look of this outage has found, in words; None while that is nothing."""
        return self._cause

    def look(self) -> None:
        """Begin to look, unless that was lately; log a cause that was not logged yet."""
        with self._lock:
            now = time.monotonic()
            since_s = now - self._looked_at
            if self._address is None or since_s < EVERY_S:
                return
            self._looked_at = now
            if since_s > NEW_AFTER * EVERY_S:  # calls have succeeded meanwhile
                self._cause = self._said = None
        threading.Thread(
            target=self._look, args=(self._address,), name="reachability", daemon=True
        ).start()

    def _look(self, address: Address) -> None:
        cause = why_not_reached(address, self._tls, LOOK_S)
        with self._lock:
            is_new = cause != self._said
            self._cause = self._said = cause
        if is_new and cause is not None:
            _log.warning("no connection to %s: %s", self._url, cause)
