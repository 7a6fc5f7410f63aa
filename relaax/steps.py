"""Reports of several environments at once, as arrays, and their meaning.

``Steps`` are the content of a message, with flags, by the environments' numbers on their
connection; ``Transitions`` are the meaning of the flags, read once, by slots in a worker.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from relaax.observations import Observations, count_of

#: Bits of ``Steps.flags``; they travel as they are in RLX version 2.
START = 1
TERMINATED = 2
TRUNCATED = 4
FINAL = 8
EXECUTED = 16

ENDED = TERMINATED | TRUNCATED

#: The largest reward, a 32-bit float: algorithms store rewards in that type.
MAX_REWARD = float(np.finfo(np.float32).max)

REWARD_NOT_ALLOWED = "not finite as a 32-bit float"

Flags = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: Observations of environments: arrays [B, ...] by name, one array [B, ...], or B states of any
#: kind.
States: TypeAlias = Observations | Sequence[Any]

_NO_SLOTS: IntArray = np.zeros(0, np.int64)
_NO_ACTIONS: npt.NDArray[Any] = np.zeros(0, np.float32)


class AgentName(NamedTuple):
    """The name of an agent that acts in an environment, and of the group that it belongs to."""

    name: str = ""
    group: str = ""
    #: Its index among the agents of its environment.
    number: int = 0


UNNAMED_AGENT = AgentName()


class Evaluation(Enum):
    """The choice of actions for environments that nothing is learnt from; the value is sent."""

    #: The policy's mode: its most probable actions.
    DETERMINISTIC = "deterministic"
    #: Samples of the policy, as in training.
    STOCHASTIC = "stochastic"

    @classmethod
    def _missing_(cls, value: object) -> "Evaluation":
        raise ValueError(f"evaluate must be deterministic or stochastic, is {value!r}")


def number_of(states: States) -> int:
    """Return B, of how many environments these states are."""
    return count_of(states) if isinstance(states, dict) else len(states)


@dataclass(frozen=True, slots=True)
class Steps:
    """Reports of M environments, of which A want an action and F bring a final observation.

    An environment wants an action unless its episode has ended and no other has started. A flag
    ``START`` without an end, while an episode goes on, means that this one was given up: it was
    cut off in its last observation, and the action chosen there was never taken.

    A flag ``EXECUTED`` means that the report brings the executed action of the step, which may
    differ from the action that the server sent.

    The arrays are not changed by code that gets them.
    """

    #: int64 [M], no number twice: which environments.
    environments: IntArray
    #: uint8 [M]: START, TERMINATED or TRUNCATED, FINAL, EXECUTED.
    flags: Flags
    #: float64 [M]: the reward of the previous action; 0 without one.
    rewards: npt.NDArray[np.float64]
    #: [A, ...], a dict of arrays [A, ...] by name, or a sequence of A states of any kind: the
    #: observations for the next actions.
    observations: States
    #: [F, ...], a dict, or a sequence of F states: in which episodes ended; always for a truncated
    #: one.
    finals: States
    #: [X, ...], or a sequence of X actions: the executed actions of the environments with
    #: ``EXECUTED``.
    executed: npt.NDArray[Any] | Sequence[Any] = ()
    #: [M]: whose reports these are; empty where agents have no names.
    agents: Sequence[AgentName] = ()

    @property
    def actions(self) -> int:
        """A: how many actions are wanted."""
        return number_of(self.observations)

    @property
    def acting(self) -> npt.NDArray[np.bool_]:
        """bool [M]: which want an action."""
        return wants_action(self.flags)

    @property
    def has_ended(self) -> BoolArray:
        """bool [M]: whose episode is over."""
        return (self.flags & ENDED).astype(np.bool_)

    @property
    def is_truncated(self) -> BoolArray:
        """bool [M]: whose episode was cut off."""
        return (self.flags & TRUNCATED).astype(np.bool_)

    @property
    def starts(self) -> BoolArray:
        """bool [M]: which begin an episode."""
        return (self.flags & START).astype(np.bool_)

    @property
    def has_final(self) -> npt.NDArray[np.bool_]:
        """bool [M]: which bring a final observation."""
        return (self.flags & FINAL).astype(np.bool_)


def wants_action(flags: Flags) -> npt.NDArray[np.bool_]:
    """Return which of ``flags`` [M] ask for an action: bool [M]."""
    return (flags & START).astype(np.bool_) | ~(flags & ENDED).astype(np.bool_)


def is_reward_allowed(reward: float) -> bool:
    """Return whether one reward can be sent."""
    return abs(reward) <= MAX_REWARD


def are_rewards_allowed(rewards: npt.NDArray[Any]) -> bool:
    """Return whether all rewards [M], at least one, can be sent."""
    # The maximum is NaN where any reward is, and no comparison with NaN holds.
    return bool(np.maximum.reduce(np.abs(rewards)) <= MAX_REWARD)


class Transitions(NamedTuple):
    """Steps, ends and starts of environments, by their slots in one worker.

    A slot is a worker's own number for an environment of any of its connections. An environment
    takes a step, begins an episode, or both in this order. Each slot is in ``stepped`` or in
    ``acting`` or in both, and at most once in each.
    """

    #: int64 [S]: took a step.
    stepped: IntArray
    #: float64 [S]: the rewards of these steps.
    rewards: npt.NDArray[np.float64]
    #: bool [S]: which of these steps ended their episode; nothing is earned after them.
    terminated: BoolArray
    #: int64 [F]: whose episode was cut off after its step, in a state that is reported with it.
    truncated: IntArray
    #: int64 [E]: whose episode is over after its step, terminated or truncated.
    ended: IntArray
    #: int64 [G]: whose episode was cut off in the previous state; the action chosen there was never
    #: taken.
    given_up: IntArray
    #: int64 [A]: want an action, for a state that is reported.
    acting: IntArray
    #: bool [A]: which of these begin an episode with that state.
    starts: BoolArray
    #: Whether all slots took a step and want an action, and nothing else happened.
    only_steps: bool
    #: int64 [X]: report the action that they executed in their step.
    executed: IntArray = _NO_SLOTS
    #: [X, ...]: these actions, as ``BatchAgentBase.check_executed`` returns them.
    executed_actions: npt.NDArray[Any] = _NO_ACTIONS
    #: [A]: the agents that want the actions; empty where agents have no names.
    agents: Sequence[AgentName] = ()

    @property
    def started(self) -> IntArray:
        """int64: which slots begin an episode."""
        return self.acting[self.starts]


def read_transitions(
    slots: IntArray, flags: Flags, rewards: npt.NDArray[np.float64], is_running: BoolArray
) -> Transitions:
    """Return the meaning of ``flags`` [M] for ``slots`` [M], all different.

    rewards: float64 [M]. is_running: bool [M], where an episode was going on before. The flags are
    those that the protocol allows. Executed actions are left to the caller.
    """
    if not flags.any():
        neither = np.zeros(len(slots), np.bool_)
        return Transitions(
            stepped=slots,
            rewards=rewards,
            terminated=neither,
            truncated=_NO_SLOTS,
            ended=_NO_SLOTS,
            given_up=_NO_SLOTS,
            acting=slots,
            starts=neither,
            only_steps=True,
        )
    has_ended, starts = (flags & ENDED) != 0, (flags & START) != 0
    stepped, acting = has_ended | ~starts, wants_action(flags)
    return Transitions(
        stepped=slots[stepped],
        rewards=rewards[stepped],
        terminated=(flags[stepped] & TERMINATED) != 0,
        truncated=slots[(flags & TRUNCATED) != 0],
        ended=slots[has_ended],
        given_up=slots[starts & ~has_ended & is_running],
        acting=slots[acting],
        starts=starts[acting],
        only_steps=False,
        executed=slots[(flags & EXECUTED) != 0],
    )
