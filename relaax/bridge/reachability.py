"""Says in the log why a server is not reached: gRPC does not say it of calls that wait."""

import logging
import threading
import time
from collections.abc import Callable

from relaax.access import current_access
from relaax.access.reach import why_not_reached
from relaax.address import Address
from relaax.throttled_log import RepeatedWarning

#: How long after a call that failed the next one is made: at first, and when many have.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0

#: Why calls wait is said when it changes, and so often while it does not.
SAY_AGAIN_S = 60.0


class RetryPause:
    """Pauses between the calls of one method, which fail until the server is back.

    Each pause is longer than the one before, also where a caller has given up meanwhile and calls
    again. Methods have each their own: one may be answered while another one is not.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._complaint = RepeatedWarning(log, SAY_AGAIN_S)
        self._pause_s = FIRST_PAUSE_S

    def reset(self) -> bool:
        """Take note of an answer; return whether it was said before that there is none."""
        self._pause_s = FIRST_PAUSE_S
        return self._complaint.forget()

    def wait(self, why: str, until: threading.Event) -> None:
        """Say why the call has failed, if that is new, and pause, or ``until`` that is set."""
        self._complaint.say(why)
        until.wait(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)


_log = logging.getLogger(__name__)

#: How often it is looked, at most.
EVERY_S = 10.0

#: An outage is a new one when no call has failed for so long.
NEW_AFTER_S = 30.0

#: How long one look takes.
LOOK_S = 2.0


class Reachability:
    """Looks at the server at ``url``, as this process reaches it, when a call has failed.

    Each look is a connection of its own, on a thread that ends with it: no call waits for it. The
    first one comes when calls have failed for ``patience_s``: a server that starts a moment later
    is not worth a warning. For several threads. A socket's path is not looked at.
    """

    def __init__(
        self, url: str, patience_s: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url
        self._address = None if url.startswith("unix:") else Address.parse(url)
        self._patience_s = patience_s
        self._clock = clock
        self._tls = current_access().tls
        self._lock = threading.Lock()
        #: When this outage began, when a call failed last, and when it was looked last.
        self._began_at = self._failed_at = self._looked_at = float("-inf")
        self._cause: str | None = None
        self._complaint = RepeatedWarning(_log)

    @property
    def cause(self) -> str | None:
        """What the last look of this outage has found, in words; None while that is nothing."""
        return self._cause

    def look(self) -> None:
        """Begin to look, unless that was lately; log a cause that was not logged yet."""
        if self._address is None or not self._is_due():
            return
        threading.Thread(
            target=self._look, args=(self._address,), name="reachability", daemon=True
        ).start()

    def _is_due(self) -> bool:
        with self._lock:
            now = self._clock()
            if now - self._failed_at > NEW_AFTER_S:  # calls have succeeded meanwhile
                self._began_at, self._cause = now, None
                self._complaint.forget()
            self._failed_at = now
            if now - self._began_at < self._patience_s or now - self._looked_at < EVERY_S:
                return False
            self._looked_at = now
            return True

    def _look(self, address: Address) -> None:
        self._cause = cause = why_not_reached(address, self._tls, LOOK_S)
        if cause is None:
            self._complaint.forget()
        else:
            self._complaint.say(f"no connection to {self._url}: {cause}")
