"""How many connections of TLS have begun at gRPC ports, and how many of these were of any use."""

import threading
from collections import Counter
from collections.abc import Mapping

#: A connection is accepted, before its handshake; and a call has shown the right token.
BEGUN, PROVED = "begun", "proved"


class GrpcConnections:
    """Counts connections by how far they have come, at all gRPC ports of a process.

    gRPC tells nobody of a handshake that fails: those that have begun and not proved anything are
    all that is known of strangers without a certificate. For several threads.
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
