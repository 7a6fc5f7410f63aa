"""The credentials of this process, its conditions for others, and counts of refusals."""

import logging
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from relaax.address import Address, is_loopback
from relaax.errors import ConfigurationError
from relaax.net.access.tls import TlsFiles
from relaax.net.access.tokens import TokenFile
from relaax.telemetry.throttled_log import of_kind

#: A connection is accepted, before its handshake; and a call has shown the right token.
BEGUN, PROVED = "begun", "proved"

_log = logging.getLogger(__name__)


class Counts:
    """Counts by name, for several threads."""

    def __init__(self, *names: str) -> None:
        self._lock = threading.Lock()
        self._totals = Counter(dict.fromkeys(names, 0))

    def count(self, name: str) -> None:
        """Count one more."""
        with self._lock:
            self._totals[name] += 1

    def totals(self) -> dict[str, int]:
        """Return how many there were by name, also of each that was given at first."""
        with self._lock:
            return dict(self._totals)


class Refusals(Counts):
    """Counts refusals at all ports of a process, by the kind of port."""

    def add(self, port: str, address: str, reason: str) -> None:
        """Count and log a caller without the required proof.

        ``port``: its kind, for example gRPC. ``address``: the caller's, without its own port.
        """
        self.count(port)
        _log.warning(
            "refused at the %s port, from %s: %s", port, address, reason,
            extra=of_kind(f"refused {port}"),
        )  # fmt: skip


#: A variable of the environment that allows the same as --insecure, for programs without options.
INSECURE = "RELAAX_INSECURE"


@dataclass(frozen=True)
class Access:
    """How the gRPC, RLX and HTTP ports of a process are guarded, and how it calls others."""

    #: None where there is no TLS.
    tls: TlsFiles | None = None
    #: None where no token is asked for.
    tokens: TokenFile | None = None
    #: Whether the user has allowed unguarded ports on any network.
    is_insecure: bool = False
    #: Whether environments have to show certificates, where there is a CA; servers always do.
    environments_need_certificates: bool = True
    #: The HTTP proxy that other servers are called through; None where they are called directly.
    proxy: Address | None = None
    #: Refusals at all ports.
    refusals: Refusals = field(default_factory=Refusals, compare=False)
    #: Connections to gRPC ports over TLS, by how far they have come. gRPC reports no failed
    #: handshake: strangers without a certificate have begun, and proved nothing.
    grpc_connections: Counts = field(default_factory=partial(Counts, BEGUN, PROVED), compare=False)


class _Process:
    """The access of this process: callers that make a channel need only an address."""

    access: Access | None = None


def current_access() -> Access:
    """Return the access of this process, and of processes that it forks."""
    if _Process.access is None:
        _Process.access = Access(is_insecure=is_allowed_to_be_insecure())
    return _Process.access


def is_allowed_to_be_insecure() -> bool:
    """Return whether the environment of this process has RELAAX_INSECURE, and not 0."""
    return os.environ.get(INSECURE, "0") not in ("", "0")


def use_access(access: Access) -> None:
    """Let this hold for all ports and channels that are made from now on."""
    _Process.access = access


@contextmanager
def access_while(access: Access) -> Iterator[None]:
    """Let this hold meanwhile."""
    before, _Process.access = _Process.access, access
    try:
        yield
    finally:
        _Process.access = before


def refuse_unguarded(address: Address, access: Access) -> None:
    """Raise ConfigurationError for an address that others reach, unless TLS and tokens guard it.

    Not where the user allows it.
    """
    what = "" if access.is_insecure else _missing(address, access)
    if what:
        raise ConfigurationError(
            f"cannot listen at {address}: other machines reach this address, and there is no "
            f"{what}. 'relaax-certificates FOLDER HOST ...' makes the files for both; or listen at "
            "localhost; or give --insecure, or set RELAAX_INSECURE=1, on a network where everybody "
            "may use this port"
        )


def require_guarded(address: Address, access: Access) -> None:
    """Do as ``refuse_unguarded``, before a port is opened; warn of a port that the user allows."""
    refuse_unguarded(address, access)
    if what := _missing(address, access):
        _log.warning(
            "--insecure: everybody who reaches %s may use it: there is no %s", address, what
        )


def _missing(address: Address, access: Access) -> str:
    """Return in words the missing guards; nothing if all is well."""
    missing = []
    if access.tls is None:
        missing.append("TLS (--tls-cert, --tls-key)")
    if access.tokens is None:
        missing.append("token (--auth-token-file)")
    return "" if not missing or is_loopback(address.host) else " and ".join(missing)
