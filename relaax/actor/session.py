"""What an actor is connected to: Surreal's ``session_config``, as parts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from relaax.actor.parameter_client import ParameterClient
from relaax.actor.pull_rule import PullRule
from relaax.algorithm_base import ExperienceSink, Metrics
from relaax.replay.step_batch import StepBatch


class NoExperience:
    """An ``ExperienceSink`` for an actor that is judged: its steps go nowhere."""

    def warm_up(self) -> None:
        """Do nothing."""

    def put(self, rollouts: Any) -> None:
        """Drop the steps."""

    def close(self) -> None:
        """Do nothing."""


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
