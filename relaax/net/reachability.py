"""Pauses between failed calls, and why a server is not reached: a call that waits does not know."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing

import grpc

from relaax.errors import ConfigurationError
from relaax.net.access import Access, current_access
from relaax.net.channels import open_channel
from relaax.telemetry.throttled_log import RepeatedWarning

#: Any method: a server that answers that there is none is reached.
_METHOD = "/grpc.health.v1.Health/Check"

#: In gRPC's words: bytes that are not TLS; a certificate of an unknown signer; a connection that
#: the server closes, as it does without a word where TLS or a certificate is missing.
_NO_TLS, _UNKNOWN_SIGNER, _CLOSED = "WRONG_VERSION_NUMBER", "issuer certificate", "Socket closed"

#: Why calls wait is said when it changes, and so often while it does not.
SAY_AGAIN_S = 60.0

_log = logging.getLogger(__name__)

#: How often it is looked, at most.
EVERY_S = 10.0

#: An outage is a new one when no call has failed for so long.
NEW_AFTER_S = 30.0

#: How long one look takes.
LOOK_S = 2.0

#: How long after a call that failed the next one is made: at first, and when many have.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0


def why_not_reached(url: str, timeout_s: float) -> str | None:
    """Return why the gRPC server at ``url`` is not reached by this process; None if it is.

    None also for a server that says nothing within ``timeout_s``.
    """
    try:
        with closing(open_channel(url)) as channel:
            channel.unary_unary(_METHOD)(b"", timeout=timeout_s)
    except ConfigurationError as error:
        return str(error)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNAVAILABLE:
            return _in_words(error.details() or "", current_access())
    return None


def _in_words(details: str, access: Access) -> str:
    """Return the cause that gRPC gives, with the option that may help."""
    tls = access.tls
    if _NO_TLS in details:
        return (
            "it does not speak TLS, and this process does: give --tls-cert and --tls-key to both, "
            "or to neither"
        )
    if _UNKNOWN_SIGNER in details:
        known = "of this machine" if tls is None or tls.ca is None else f"in {tls.ca}"
        return f"its certificate is not signed by an authority {known} (--tls-ca)"
    if _CLOSED not in details:
        cause = details.rpartition("remote host: ")[2].rpartition("last error: ")[2]
        return cause if access.proxy is None else f"{cause}, by the proxy {access.proxy} (--proxy)"
    if tls is None:
        return (
            "it closes the connection, as where it speaks TLS and this process does not: give it "
            "--tls-ca, --tls-cert and --tls-key, and --auth-token-file if tokens are asked for; or "
            "the section access of the YAML file"
        )
    if tls.cert is None:
        return "it closes the connection, as where it asks for a certificate (--tls-cert)"
    return (
        f"it closes the connection, as where it does not accept the certificate in {tls.cert} "
        "(--tls-cert): perhaps its --tls-ca is of another authority"
    )


class RetryPause:
    """Pauses between the calls of one method, which fail until the server is back.

    Each pause is longer than the one before, also where a caller has given up meanwhile and calls
    again. Methods have each their own: one may be answered while another one is not.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._complaint = RepeatedWarning(log, SAY_AGAIN_S)
        self._pause_s = FIRST_PAUSE_S

    def reset(self) -> bool:
        """Note an answer; return whether an outage was logged before it."""
        self._pause_s = FIRST_PAUSE_S
        return self._complaint.forget()

    def wait(self, why: str, until: threading.Event) -> None:
        """Log why the call has failed, if that is new, and pause, or ``until`` that is set."""
        self._complaint.say(why)
        until.wait(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)


class Reachability:
    """Looks at the server at ``url``, as this process reaches it, when a call has failed.

    Each look is a call of its own, on a thread that ends with it: no other call waits for it. The
    first one comes when calls have failed for ``patience_s``: a server that starts a moment later
    is not worth a warning. For several threads. A socket's path is not looked at.
    """

    def __init__(
        self, url: str, patience_s: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url
        self._patience_s = patience_s
        self._clock = clock
        self._lock = threading.Lock()
        #: When this outage began, when a call failed last, and when it was looked last.
        self._began_at = self._failed_at = self._looked_at = float("-inf")
        self._cause: str | None = None
        self._complaint = RepeatedWarning(_log)

    @property
    def cause(self) -> str | None:
        """The cause that the last look of this outage has found; None if none was found."""
        return self._cause

    def look(self) -> None:
        """Begin to look, unless that was lately; log a cause that was not logged yet."""
        if self._is_due() and not self._url.startswith("unix:"):
            threading.Thread(target=self._look, name="reachability", daemon=True).start()

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

    def _look(self) -> None:
        self._cause = cause = why_not_reached(self._url, LOOK_S)
        if cause is None:
            self._complaint.forget()
        else:
            self._complaint.say(f"no connection to {self._url}: {cause}")
