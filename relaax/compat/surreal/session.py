"""What an actor is connected to: Surreal's ``session_config``, as parts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from relaax.algorithm_base import ExperienceSink, Metrics
from relaax.compat.surreal.parameter_client import ParameterClient
from relaax.errors import ConfigurationError
from relaax.replay.step_batch import StepBatch

ActorMode: TypeAlias = Literal["training", "eval_deterministic", "eval_stochastic"]

TRAINING: ActorMode = "training"
EVAL_DETERMINISTIC: ActorMode = "eval_deterministic"
EVAL_STOCHASTIC: ActorMode = "eval_stochastic"

#: Seed 000, "Actor": ``actor_mode``.
ACTOR_MODES: tuple[ActorMode, ...] = get_args(ActorMode)


def require_mode(mode: str) -> ActorMode:
    """Return ``mode`` if there is such a one; else ConfigurationError."""
    for known in ACTOR_MODES:
        if mode == known:
            return known
    raise ConfigurationError(f"an actor's mode is one of {', '.join(ACTOR_MODES)}, not {mode!r}")


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


@dataclass(frozen=True)
class ActorSession:
    """The parts that a process hands to its actor, and closes when the actor has ended."""

    #: Where parameters come from.
    parameters: ParameterClient
    #: Where steps go.
    experience: ExperienceSink[StepBatch]
    #: Where scalars go.
    metrics: Metrics
    pull_rule: PullRule = field(default_factory=PullRule)
    #: An episode that has not ended after so many steps is cut off; None: by the environment alone.
    limit_episode_length: int | None = None
    #: Of what the actor draws, below 2**32; another one for each actor.
    seed: int = 0
    #: Whether the actor is to end, in the middle of an episode too.
    is_over: Callable[[], bool] = lambda: False
