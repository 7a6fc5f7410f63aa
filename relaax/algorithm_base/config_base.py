"""The typed configuration of an algorithm."""

from collections.abc import Mapping
from typing import Any

from relaax.spaces import Space


class ConfigBase:
    """Made once from the YAML's ``algorithm:`` section, at the edge.

    ``__init__`` gets the section without the keys that find the algorithm (``path``, ``name``).
    It raises ValueError with a message that names the key for what it cannot use; pydantic's
    ValidationError is one.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Keep the section as it is."""
        self.config = config
        #: Another one in each process that makes agents, on all RLX servers; set before they are
        #: made, so that agents of one seed do not all draw the same numbers. It depends on the
        #: RLX server's address and on how many processes it has started before.
        self.worker_number = 0

    def observation_space(self) -> Space | None:
        """Return the space of one environment's states (RLX version 2); None if any will do."""
        return None

    def action_space(self) -> Space | None:
        """Return the space of one environment's actions; None if it is not known."""
        return None
