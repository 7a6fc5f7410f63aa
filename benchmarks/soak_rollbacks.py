"""How far the global step may go back: to the last checkpoint, and no further."""

from collections.abc import Sequence
from dataclasses import dataclass

#: Steps that are counted between two looks, at most.
STEPS_BETWEEN_LOOKS = 75


@dataclass(frozen=True)
class Look:
    """What was seen of a run of the first shard at a moment."""

    at: float
    #: The global step.
    step: int


@dataclass(frozen=True)
class Rollback:
    """How many steps were taken back at once, and how many that may be."""

    steps: int
    most: int

    @property
    def holds(self) -> bool:
        """Whether it is within its bounds."""
        return 0 <= self.steps <= self.most


def at_end(steps: int, looks: Sequence[Look], seconds: float) -> Rollback:
    """Return the rollback with which a run has ended; ``seconds`` are between checkpoints."""
    return Rollback(steps, _counted_last(looks, seconds))


def _counted_last(looks: Sequence[Look], seconds: float) -> int:
    """Return how many steps were counted in the last seconds in which any were, at most.

    While a shard is away none are counted, and none are saved.
    """
    if not looks:
        return 0
    last = looks[-1].step
    stood_at = max((look.at for look in looks if look.step != last), default=looks[0].at)
    within = [look.step for look in looks if look.at >= stood_at - seconds]
    return last - min(within) + STEPS_BETWEEN_LOOKS
