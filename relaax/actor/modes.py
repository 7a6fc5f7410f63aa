"""What an actor acts for: to learn, or to be judged."""

from typing import Literal, TypeAlias, get_args

from relaax.errors import ConfigurationError

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
