"""How much the clients of an RLX server may ask for."""

from collections.abc import Iterator
from dataclasses import dataclass

from relaax.errors import ProtocolError
from relaax.protocol.framing import DEFAULT_MAX_FRAME_BYTES
from relaax.spaces import Space, is_nested, members, numbers_of, shape_of

#: A hello with long names, or a state of version 1 with much around its numbers.
LEAST_BYTES = 64 * 1024

#: Larger than everything around the arrays of one environment and the names of up to 255 arrays.
_BYTES_AROUND = 1024

#: The name of an array, its type and shape, twice.
_BYTES_AROUND_AN_ARRAY = 1024

#: Two 64-bit numbers, since a message that ends an episode holds its last state and the next one;
#: as text, one number with all its digits and a blank has 26.
_NUMBER_BYTES = 32


def message_limit(space: Space | None, environments: int) -> int:
    """Return how many bytes a message about so many environments may have.

    ``space`` is the space of one observation. There is room for two observations as 64-bit numbers,
    twice over, or for one as text with all digits; larger messages are refused before they are
    received or parsed, which would keep other clients waiting. An unknown space has the limit of
    the protocol, which nothing exceeds.
    """
    leaves = None if space is None else list(_leaves(space))
    if leaves is None or any(shape_of(leaf) is None for leaf in leaves):
        return DEFAULT_MAX_FRAME_BYTES
    around = _BYTES_AROUND + _BYTES_AROUND_AN_ARRAY * len(leaves)
    numbers = sum(numbers_of(leaf) for leaf in leaves)
    needed = LEAST_BYTES + environments * (around + _NUMBER_BYTES * numbers)
    return min(needed, DEFAULT_MAX_FRAME_BYTES)


def _leaves(space: Space) -> Iterator[Space]:
    """Return the spaces of arrays in ``space``."""
    if not is_nested(space):
        yield space
        return
    for _, inner in members(space):
        yield from _leaves(inner)


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections there may be at a time."""

    most: int
    most_per_address: int

    def exceeded(self, connections: int, from_there: int) -> str | None:
        """Return in words the limit that one more connection would exceed; None if it is allowed.

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
    """The limits of one connection."""

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
