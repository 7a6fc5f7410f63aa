"""How an environment evaluates: its scores are kept by policy, and nothing of it is learnt from."""

from dataclasses import dataclass
from enum import Enum


class Evaluation(Enum):
    """The choice of actions for an environment that evaluates; the value is sent."""

    #: The policy's mode: its most probable actions.
    DETERMINISTIC = "deterministic"
    #: Samples of the policy, as in training.
    STOCHASTIC = "stochastic"


@dataclass(frozen=True)
class EvaluatedPolicy:
    """Which policy an episode is played with."""

    #: None where versions have been counted anew since the episode began: its parameter server has
    #: started again.
    version: int | None
    #: The global step when the worker got the policy.
    global_t: int
