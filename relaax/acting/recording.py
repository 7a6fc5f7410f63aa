"""Records what is chosen and what comes of it, and hands it to what learns."""

from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from relaax.acting.choosing import Chosen
from relaax.acting.executed_actions import ExecutedActions
from relaax.algorithm_base import ExperienceSink, Transitions
from relaax.algorithm_base.roles import Admission
from relaax.learning.filters import ZFilter
from relaax.learning.policy import Policy, PolicyHolder
from relaax.learning.rollouts import Columns
from relaax.learning.rollouts.labels import (
    AGENT,
    GROUP,
    LABELS,
    POLICY_NAME,
    POLICY_STAMP,
    POLICY_VERSION,
    name_column,
)
from relaax.observations import Observations
from relaax.steps import UNNAMED_AGENT, AgentName

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

BatchT_co = TypeVar("BatchT_co", covariant=True)
BatchT = TypeVar("BatchT")


class Recorder(Protocol[BatchT_co]):
    """Takes what happens in many environments, and hands out batches of it.

    A ``RolloutStore`` hands out rollouts, a ``StepRecorder`` single steps.
    """

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""

    def fitting(self, observations: Observations) -> Observations:
        """Return observations of the types that are kept; InvalidState for what is no such."""

    def forget(self, slots: IntArray) -> BatchT_co | None:
        """Forget the environments at ``slots``; return what is worth to be kept of them."""

    def reward(self, slots: IntArray, rewards: Array, terminated: Array | bool) -> None:
        """Complete the newest step of ``slots``: what its action earned, and whether it ended."""

    def chosen(self, slots: IntArray) -> Array:
        """Return the actions [X, ...] that were chosen in the newest steps of ``slots``."""

    def executed(self, slots: IntArray, actions: Array) -> None:
        """Note that ``slots`` executed these actions [X, ...] in the place of the chosen ones."""

    def cut_last(self, slots: IntArray) -> None:
        """Take back the last action of ``slots``: the episode was cut off in that state."""

    def observe(
        self, slots: IntArray, observations: Observations, starts: Array | bool
    ) -> BatchT_co | None:
        """Begin a step in each of ``slots``; return what this completes, if anything."""

    def cut_off(self, slots: IntArray, finals: Observations) -> BatchT_co | None:
        """Note the states in which the episodes of ``slots`` were cut off; else as ``observe``."""

    def record(
        self,
        slots: IntArray,
        actions: Array,
        extras: Mapping[str, Array],
        recurrent_state: FloatArray,
        version: int,
    ) -> None:
        """Note what was chosen in the steps just begun, and the recurrent state before it."""


class Recording(Generic[BatchT]):
    """Hands the full rollouts, or single steps, that ``rollouts`` records to ``sink``.

    Recorded rewards have gone through a ``reward_filter``, were multiplied by ``reward_scale``, and
    with ``clip_rewards`` were cut to [-1, 1] after that. ``executed`` knows which actions were
    executed in the place of others. ``columns`` say which labels are recorded; ``stamp`` is where
    a policy's vector has its ``POLICY_STAMP``. ``admission`` says which rollouts may be begun.
    """

    def __init__(
        self,
        rollouts: Recorder[BatchT],
        sink: ExperienceSink[BatchT],
        columns: Columns,
        clip_rewards: bool = False,
        reward_scale: float = 1.0,
        reward_filter: ZFilter | None = None,
        executed: ExecutedActions | None = None,
        stamp: slice | None = None,
        admission: Admission | None = None,
    ) -> None:
        self._admission = admission
        self.rollouts = rollouts
        self._sink = sink
        self._labels = [name for name in columns.extras if name in LABELS]
        self._clip_rewards = clip_rewards
        self._reward_scale = reward_scale
        self._reward_filter = reward_filter
        self._executed = executed
        self._stamp = stamp

    def forget(self, slots: IntArray, *, is_complete: bool) -> None:
        """Forget environments; hand over what they have begun if it ``is_complete``."""
        begun = self.rollouts.forget(slots)
        if is_complete:
            self._hand_over(begun)
        if self._admission is not None:
            self._admission.release(slots.tolist())

    def complete(self, transitions: Transitions) -> None:
        """Note what the actions before have earned, and which of them were others, or none."""
        rollouts, executed = self.rollouts, self._executed
        if executed is not None and (len(transitions.executed) or executed.has_reports):
            chosen = rollouts.chosen(transitions.executed)
            slots, actions = executed.others(transitions, chosen)
            if len(slots):
                rollouts.executed(slots, actions)
        rewards = self._learnt(transitions.rewards)
        rollouts.reward(transitions.stepped, rewards, transitions.terminated)
        if not transitions.only_steps:
            rollouts.cut_last(transitions.given_up)

    def cut_off(self, slots: IntArray, observations: Observations) -> None:
        """Note the ``observations`` in which the episodes of ``slots`` were cut off."""
        self._hand_over(self.rollouts.cut_off(slots, observations))

    def begin(self, slots: IntArray, observations: Observations, starts: Array) -> None:
        """Begin a step in each of ``slots``; hand over what this completes."""
        self._hand_over(self.rollouts.observe(slots, observations, starts))

    def admitted(self, slots: IntArray, holder: PolicyHolder) -> Policy:
        """Return the policy with which ``slots`` may go on: the current one, maybe after a wait."""
        policy = holder.current
        if self._admission is not None:
            environments = slots.tolist()
            while not self._admission.admits(environments, policy.version.number):
                policy = holder.current
        return policy

    def chose(self, slots: IntArray, chosen: Chosen, agents: Mapping[int, AgentName]) -> None:
        """Note the choices in the steps just begun; ``agents`` are by slot."""
        extras, policy = chosen.choice.extras, chosen.policy
        if self._labels:
            extras = {**extras, **self._labels_of(slots, policy, agents)}
        self.rollouts.record(
            slots, chosen.choice.actions, extras, chosen.before, policy.version.number
        )

    def _labels_of(
        self, slots: IntArray, policy: Policy, agents: Mapping[int, AgentName]
    ) -> dict[str, Array]:
        who = [agents.get(slot, UNNAMED_AGENT) for slot in slots.tolist()]
        columns: Mapping[str, Any] = {
            POLICY_NAME: lambda: name_column([policy.name]),
            POLICY_VERSION: lambda: np.array([policy.version.number]),
            POLICY_STAMP: lambda: self._stamp_of(policy),
            AGENT: lambda: name_column([agent.name for agent in who]),
            GROUP: lambda: name_column([agent.group for agent in who]),
        }
        return {name: columns[name]() for name in self._labels}

    def _stamp_of(self, policy: Policy) -> Array:
        if self._stamp is None or policy.vector is None:
            raise RuntimeError(f"the vector of policy {policy.name!r} has no stamp")
        return policy.vector[np.newaxis, self._stamp]

    def _learnt(self, rewards: Array) -> Array:
        """Return rewards [S] as they are learnt from: filtered, scaled, and cut to [-1, 1]."""
        if self._reward_filter is not None:
            rewards = self._reward_filter.filtered(rewards[:, np.newaxis])[:, 0]
        if self._reward_scale != 1:
            rewards = rewards * self._reward_scale
        return np.clip(rewards, -1, 1) if self._clip_rewards else rewards

    def _hand_over(self, rollouts: BatchT | None) -> None:
        if rollouts is not None:
            self._sink.put(rollouts)
