"""Pauses between failed calls, and why a server is not reached: gRPC does not report it."""

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException

from relaax.address import Address
from relaax.errors import ConfigurationError
from relaax.net.access import current_access
from relaax.net.access.tls import TlsFiles, client_context
from relaax.net.tls_refusals import (
    CERTIFICATE_REQUIRED,
    refusal_in_words,
    require_a_peer,
    speaks_no_tls,
)
from relaax.telemetry.throttled_log import RepeatedWarning

#: OpenSSL's numbers (``x509_vfy.h``) for a certificate of an unknown signer: self-signed, a
#: self-signed end of the chain, or a missing one.
_UNKNOWN_SIGNERS = (18, 19, 20, 21)

#: The protocol that gRPC speaks within TLS: a server may refuse clients that do not offer it.
_PROTOCOLS = ["h2"]

_NO_CERTIFICATE = "it asks for a certificate, and there is none: give --tls-cert and --tls-key"

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


def why_not_reached(
    address: Address, tls: TlsFiles | None, timeout_s: float, proxy: Address | None = None
) -> str | None:
    """Return why a gRPC server at ``address`` is not reached; None without a visible cause.

    ``tls``: this process's certificate and authority; None without TLS. A handshake is tried then,
    too, to see whether the server speaks TLS: only messages of TLS are ever sent. Takes
    ``timeout_s`` at most, and longer while a name is looked up. ``proxy``: the HTTP proxy of the
    calls, if there is one.
    """
    deadline = time.monotonic() + timeout_s
    try:
        context = _context(tls)
        with _connected(address, proxy, timeout_s) as sock:
            sock.settimeout(_left_s(deadline))
            return _why_no_tls(sock, context, address.host, tls, deadline)
    except ConfigurationError as error:
        return str(error)
    except UnicodeError:  # before it is asked for
        return f"{address.host} cannot be the name of a machine"
    except OSError as error:
        return error.strerror or str(error)


def _connected(address: Address, proxy: Address | None, timeout_s: float) -> socket.socket:
    if proxy is None:
        return socket.create_connection((address.host, address.port), timeout_s)
    tunnel = HTTPConnection(proxy.host, proxy.port, timeout=timeout_s)
    tunnel.set_tunnel(address.host, address.port)
    try:
        tunnel.connect()
    except (OSError, HTTPException) as error:
        why = getattr(error, "strerror", None) or error
        raise OSError(f"the proxy {proxy} does not connect to it: {why} (--proxy)") from error
    return tunnel.sock


def _context(tls: TlsFiles | None) -> ssl.SSLContext:
    if tls is None:  # it is only asked whether there is TLS
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context = client_context(tls)
    context.set_alpn_protocols(_PROTOCOLS)
    return context


def _why_no_tls(
    sock: socket.socket, context: ssl.SSLContext, host: str, tls: TlsFiles | None, deadline: float
) -> str | None:
    """Shake hands, and wait for the first byte: a server refuses a certificate after that."""
    try:
        require_a_peer(sock)
        with context.wrap_socket(sock, server_hostname=host) as connection:
            return _why_unprotected() if tls is None else _why_closed(connection, tls, deadline)
    except ssl.SSLCertVerificationError as error:
        return None if tls is None else _why_not_accepted(error, tls)
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError, TimeoutError):
        return None  # a silent or full server proves nothing about TLS
    except ssl.SSLError as error:
        if tls is None:
            return None if speaks_no_tls(error) else _why_unprotected()
        if speaks_no_tls(error):
            return (
                "it does not speak TLS, and this process does: give --tls-cert and --tls-key to "
                "both, or to neither"
            )
        return _why_refused(error, tls)


def _why_refused(error: ssl.SSLError, tls: TlsFiles) -> str:
    if tls.cert is None and error.reason == CERTIFICATE_REQUIRED:
        return _NO_CERTIFICATE
    return f"{refusal_in_words(error) or error.reason} (--tls-ca, --tls-cert)"


def _why_unprotected() -> str:
    return (
        "it speaks TLS, and this process does not: give it --tls-ca, --tls-cert and --tls-key, and "
        "--auth-token-file if tokens are asked for; or the section access of the YAML file"
    )


def _why_not_accepted(error: ssl.SSLCertVerificationError, tls: TlsFiles) -> str:
    if error.verify_code not in _UNKNOWN_SIGNERS:
        return f"its certificate is not accepted: {error.verify_message}"
    if tls.ca is None:
        return "its certificate is signed by no authority that this machine knows: give --tls-ca"
    return f"its certificate is not signed by an authority in {tls.ca} (--tls-ca)"


def _why_closed(connection: ssl.SSLSocket, tls: TlsFiles, deadline: float) -> str | None:
    """Return why the server closes the connection at once; None if it does not."""
    connection.settimeout(_left_s(deadline))
    try:
        if connection.recv(1):
            return None
    except ConnectionError:
        pass  # the same
    if tls.cert is None:
        return _NO_CERTIFICATE
    return (
        f"it does not accept the certificate in {tls.cert} (--tls-cert): perhaps its --tls-ca is "
        "of another authority"
    )


def _left_s(deadline: float) -> float:
    """Return how long to wait; not zero, which would not wait for bytes that have come."""
    return max(deadline - time.monotonic(), 0.001)


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
        self._access = current_access()
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
        self._cause = cause = why_not_reached(address, self._access.tls, LOOK_S, self._access.proxy)
        if cause is None:
            self._complaint.forget()
        else:
            self._complaint.say(f"no connection to {self._url}: {cause}")
