"""Attempts without the right proof: counted, and logged at a limited rate."""

import logging
import threading
from collections import Counter
from collections.abc import Mapping

from relaax.telemetry.throttled_log import of_kind

#: A connection is accepted, before its handshake; and a call has shown the right token.
BEGUN, PROVED = "begun", "proved"

_log = logging.getLogger(__name__)


class GrpcConnections:
    """Counts connections by how far they have come, at all gRPC ports of a process.

    gRPC reports no failed handshake: strangers without a certificate are counted as connections
    that have begun and proved nothing. For several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: Counter[str] = Counter()

    def add(self, how_far: str) -> None:
        """Count a connection that has come so far."""
        with self._lock:
            self._totals[how_far] += 1

    def totals(self) -> Mapping[str, int]:
        """Return how many there were, by how far they have come."""
        with self._lock:
            return {BEGUN: self._totals[BEGUN], PROVED: self._totals[PROVED]}


class Refusals:
    """Counts refusals at all ports of a process. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: Counter[str] = Counter()

    def totals(self) -> dict[str, int]:
        """Return how many there were, by the kind of port."""
        with self._lock:
            return dict(self._totals)

    def add(self, port: str, address: str, reason: str) -> None:
        """Count and log a caller without the required proof.

        ``port``: its kind, for example gRPC. ``address``: the caller's, without its own port.
        """
        with self._lock:
            self._totals[port] += 1
        _log.warning(
            "refused at the %s port, from %s: %s", port, address, reason,
            extra=of_kind(f"refused {port}"),
        )  # fmt: skip
