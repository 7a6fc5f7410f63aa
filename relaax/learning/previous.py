"""The previous action and its reward as inputs of a network."""

from math import prod
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import Transitions
from relaax.learning.action_units import ActionUnits
from relaax.learning.distributions import ActionHead, ActionValues, Categorical, MultiDiscrete
from relaax.learning.networks import Network
from relaax.learning.networks.description import PREVIOUS_ACTION, PREVIOUS_REWARD
from relaax.observations import UNNAMED, Observations

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


def previous_size(head: ActionHead) -> int:
    """Return how many numbers an action is as an input: see ``previous_input``."""
    choices = _choices(head)
    return sum(choices) if choices else prod(head.action_shape)


def previous_input(head: ActionHead, actions: Array) -> FloatArray:
    """Return actions [B, ...] as inputs, float32 [B, N].

    Of each choice among n actions there are n numbers, 1 for the chosen one and 0 for the others.
    Bits and continuous actions are taken as they are, in the policy's units.
    """
    rows, choices = actions.reshape(len(actions), prod(actions.shape[1:])), _choices(head)
    if not choices:
        return rows.astype(np.float32)
    parts = [np.eye(n, dtype=np.float32)[rows[:, i]] for i, n in enumerate(choices)]
    return np.concatenate(parts, axis=1)


def _choices(head: ActionHead) -> tuple[int, ...]:
    """Return the number of actions of each choice; () of other actions."""
    if isinstance(head, Categorical):
        return (head.outputs,)
    if isinstance(head, ActionValues):
        return (head.actions,)
    return head.nvec if isinstance(head, MultiDiscrete) else ()


class PreviousStep:
    """The last action and reward of each environment; zeros where an episode starts.

    The action is the executed one, and the reward is the environment's own, neither scaled nor cut.
    """

    def __init__(self, names: tuple[str, ...], head: ActionHead) -> None:
        self._names, self._head = names, head
        self._sizes = {PREVIOUS_ACTION: previous_size(head), PREVIOUS_REWARD: 1}
        self.grow(0)

    @classmethod
    def of(cls, network: Network, head: ActionHead) -> Self | None:
        """Return the inputs that ``network`` has of these; None if it has neither."""
        names = tuple(n for n in (PREVIOUS_ACTION, PREVIOUS_REWARD) if n in network.encoders)
        return cls(names, head) if names else None

    def anew(self) -> "PreviousStep":
        """Return the same for other environments."""
        return PreviousStep(self._names, self._head)

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""
        before = getattr(self, "_parts", {})
        parts = {n: np.zeros((capacity, self._sizes[n]), np.float32) for n in self._names}
        for name, part in before.items():
            parts[name][: len(part)] = part
        self._parts = parts

    def start(self, slots: IntArray) -> None:
        """Begin episodes in ``slots``."""
        for part in self._parts.values():
            part[slots] = 0

    def chose(self, slots: IntArray, actions: Array) -> None:
        """Note the actions [B, ...] of ``slots``, in the policy's units."""
        if PREVIOUS_ACTION in self._parts:
            self._parts[PREVIOUS_ACTION][slots] = previous_input(self._head, actions)

    def report(self, transitions: Transitions, units: ActionUnits | None) -> None:
        """Note the rewards of the last actions, and the actions that were executed instead."""
        if len(transitions.executed):
            actions = transitions.executed_actions
            self.chose(
                transitions.executed, actions if units is None else units.from_plant(actions)
            )
        if PREVIOUS_REWARD in self._parts:
            self._parts[PREVIOUS_REWARD][transitions.stepped, 0] = transitions.rewards

    def joined(self, slots: IntArray, observations: Observations) -> Observations:
        """Return observations [B, ...] of ``slots`` by name, with these beside them."""
        named = observations if isinstance(observations, dict) else {UNNAMED: observations}
        return {**named, **{name: part[slots] for name, part in self._parts.items()}}
