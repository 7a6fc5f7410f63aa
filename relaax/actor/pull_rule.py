"""When an actor fetches the parameters: seed 000, "Actor", ``_setup_parameter_pull``."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from relaax.errors import ConfigurationError

FetchMode: TypeAlias = Literal["step", "episode"]


@dataclass(frozen=True)
class PullRule:
    """Fetch the parameters before each ``interval``-th step, or before each such episode.

    They are fetched once at the start besides: Surreal's ``fetch_parameter_mode`` and
    ``fetch_parameter_interval``.
    """

    mode: FetchMode = "step"
    interval: int = 10

    def __post_init__(self) -> None:
        if self.mode not in ("step", "episode"):
            raise ConfigurationError(
                f"parameters are fetched by 'step' or by 'episode', not by {self.mode!r}"
            )
        if self.interval < 1:
            raise ConfigurationError(
                f"parameters are fetched every 1 or more {self.mode}s, not every {self.interval}"
            )


class PeriodicTracker:
    """Counts, and says so at each ``interval``-th count: with 3, at 3, 6 and 9."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._count = 0

    def track_increment(self) -> bool:
        """Count one more; return whether it is one of those."""
        self._count += 1
        return self._count % self._interval == 0
