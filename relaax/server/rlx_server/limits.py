"""How much the clients of an RLX server may ask for."""

from dataclasses import dataclass

from relaax.errors import ProtocolError


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections there may be at a time."""

    most: int
    most_per_address: int

    def exceeded(self, connections: int, from_there: int) -> str | None:
        """Return in words which limit one more would exceed, and None if it would none.

        ``from_there``: how many of the ``connections`` come from its address.
        """
        if connections >= self.most:
            return f"{connections} connections are served (--max-connections)"
        if from_there >= self.most_per_address:
            return (
                f"{from_there} connections from this address are served "
                "(--max-connections-per-address)"
            )
        return None


@dataclass(frozen=True)
class ClientLimits:
    """What one connection may do."""

    #: Messages a second.
    most_messages: float = float("inf")
    #: Metrics a second; those beyond them are not read before the next one.
    most_metrics: float = float("inf")
    #: Steps of an episode; None for no limit.
    most_episode_steps: int | None = None

    def require_patience(self, messages: int, elapsed_s: float) -> None:
        """Raise ProtocolError for a client that has sent too many messages in this time."""
        if messages > self.most_messages * elapsed_s:
            raise ProtocolError(
                f"it sends more than {self.most_messages:,} messages a second (--max-message-rate)"
            )


NO_LIMITS = ClientLimits()
