"""What an actor is connected to: Surreal's ``session_config``, as parts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from relaax.acting.parameter_client import ParameterClient, PullRule
from relaax.algorithm_base import ExperienceSink, Metrics
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
