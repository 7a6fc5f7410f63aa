"""Chooses actions for many environments, and hands their rollouts on."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from relaax.acting.evaluator import EvaluationParts, Evaluator, PinnedPolicies
from relaax.acting.executed_actions import ExecutedActions
from relaax.acting.preprocessor import Preprocessor
from relaax.algorithm_base import (
    BatchAgentBase,
    EnvironmentInfo,
    Evaluation,
    EvaluatorBase,
    ExperienceSink,
    Transitions,
)
from relaax.learning.action_units import ActionUnits
from relaax.learning.arrays import padded_size, zero_padded
from relaax.learning.distributions.base import ActionHead
from relaax.learning.exploration import NoiseSource, NoNoise
from relaax.learning.filters import ZFilter
from relaax.learning.model import PolicyModel
from relaax.learning.placements import NoLearner
from relaax.learning.policy import Policy, PolicyHolder
from relaax.learning.previous import PreviousStep
from relaax.learning.rollouts import Columns
from relaax.observations import Observations, mapped
from relaax.parameters.schedules import SlotPlaces

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

FloatArray = npt.NDArray[np.float32]


BatchT_co = TypeVar("BatchT_co", covariant=True)

#: Larger batches are evaluated in pieces, unless ``warm_up`` has prepared for larger ones.
MOST_AT_ONCE = 128


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


BatchT = TypeVar("BatchT")


class Actor(BatchAgentBase, Generic[BatchT]):
    """Acts by the current policy; what it learns from is up to the ``ExperienceSink``.

    ``rollouts`` is None where nothing learns: then nothing is kept, and the sink is never called
    but to be warmed up and closed. Rollouts hold rewards that went through a ``reward_filter``,
    were multiplied by ``reward_scale``, and with ``clip_rewards`` were cut to [-1, 1] after that.
    Actions are returned in the plant's ``units``, cut to its bounds; likelihoods and rollouts are
    those of the actions as they were drawn. Without units they are returned as they were drawn, as
    discrete ones are. Each draw has noise of its own, unless ``exploration`` makes other noise, of
    which ``places`` says how much. With parts for ``evaluation`` it makes evaluators. ``executed``
    knows which actions may be reported as executed; without it none may. ``previous`` are inputs of
    the network beside the observations.
    """

    def __init__(
        self,
        preprocessor: Preprocessor,
        policy: PolicyHolder,
        model: PolicyModel,
        distribution: ActionHead,
        columns: Columns,
        rollouts: Recorder[BatchT] | None,
        experience: ExperienceSink[BatchT],
        random: np.random.Generator,
        clip_rewards: bool = False,
        reward_scale: float = 1.0,
        reward_filter: ZFilter | None = None,
        units: ActionUnits | None = None,
        most_at_once: int = MOST_AT_ONCE,
        exploration: NoiseSource | None = None,
        evaluation: EvaluationParts | None = None,
        places: SlotPlaces | None = None,
        executed: ExecutedActions | None = None,
        previous: PreviousStep | None = None,
    ) -> None:
        self._preprocessor = preprocessor
        self._policy = policy
        self._model = model
        self._distribution = distribution
        self._columns = columns
        self._rollouts = rollouts
        self._experience = experience
        self._random = random
        self._exploration = exploration
        self._clip_rewards = clip_rewards
        self._reward_scale = reward_scale
        self._reward_filter = reward_filter
        self._units = units
        self._most_at_once = most_at_once
        self._evaluation = evaluation
        self._places = places or SlotPlaces()
        self._executed = executed
        self._previous = previous
        self._capacity = 0
        #: Whether ``act`` was begun, and has not returned: it may have left before all that it took
        #: from ``rollouts`` was handed over.
        self._is_acting = False
        self._recurrent_state = columns.recurrent_state(0)
        self._is_recurrent = self._recurrent_state.shape[-1] > 0

    @property
    def learns(self) -> bool:
        """Whether it learns while it serves: whether rollouts are recorded."""
        return self._rollouts is not None

    def warm_up(self, environments: int) -> None:
        """Trace and compile the network for every size of batch up to ``environments``.

        For observations of the usual type; what learns prepares itself, too.
        """
        self._most_at_once = max(self._most_at_once, padded_size(environments))
        self._experience.warm_up()
        count = 1
        while count <= self._most_at_once:
            observations = self._columns.observations(count)
            before = self._columns.recurrent_state(count)
            noise = self._distribution.noise(self._random, count)
            self._model.choose(self._policy.current.parameters, observations, before, noise)
            count *= 2

    def open(self, slots: IntArray) -> None:
        """Make room for environments that have come; MemoryError when there is none."""
        needed = int(slots.max(initial=-1)) + 1
        if needed > self._capacity:
            self._grow(max(needed, 2 * self._capacity))

    def connected(self, slots: IntArray, environments: Sequence[EnvironmentInfo]) -> None:
        """Take the places of environments among all of the training."""
        self._places.introduce(slots, environments)

    def close_slots(self, slots: IntArray) -> None:
        """Forget environments that have gone; hand over what they have begun.

        Not so after a call of ``act`` that was interrupted: steps before it may be missing.
        """
        if self._rollouts is not None:
            begun = self._rollouts.forget(slots)
            if not self._is_acting:
                self._hand_over(begun)

    def check(self, states: Sequence[Any] | Observations) -> Observations:
        """Return states [B, ...] as numbers of one type, by name if they have names.

        InvalidState for what is no such array.
        """
        checked = self._preprocessor.check(states)
        return checked if self._rollouts is None else self._rollouts.fitting(checked)

    def check_executed(self, actions: Sequence[Any] | Array) -> Array:
        """Return executed actions [X, ...] as they are sent; InvalidState for what does not fit."""
        if self._executed is None:
            return super().check_executed(actions)
        return self._executed.check(actions)

    def act(self, transitions: Transitions, states: Observations, finals: Observations) -> Array:
        """Complete the rows before, hand over the rollouts that are full, and choose actions."""
        self._is_acting = True
        actions = self._act(transitions, states, finals)
        self._is_acting = False
        return actions

    def evaluator(self, evaluation: Evaluation) -> EvaluatorBase:
        """Return what acts with the same network for environments that evaluate."""
        parts = self._evaluation
        if parts is None:
            return super().evaluator(evaluation)
        policies = PinnedPolicies(self._policy.current, parts)
        random = self._random.spawn(1)[0]
        exploration: NoiseSource | None = NoNoise(self._distribution)
        if evaluation is Evaluation.STOCHASTIC:
            exploration = None if parts.make_noise is None else parts.make_noise(random)
        actor = Actor[Any](
            preprocessor=parts.make_preprocessor(policies.filters),
            policy=policies,
            model=parts.model or self._model,
            distribution=self._distribution,
            columns=self._columns,
            rollouts=None,
            experience=NoLearner(),
            random=random,
            units=self._units,
            most_at_once=self._most_at_once,
            exploration=exploration,
            executed=self._executed,
            previous=self._previous and self._previous.anew(),
        )
        return Evaluator(actor, policies, parts.source, self._columns)

    def close(self) -> None:
        """End what learns."""
        self._experience.close()
        if self._executed is not None:
            self._executed.close()

    def _act(self, transitions: Transitions, states: Observations, finals: Observations) -> Array:
        if self._previous is not None:
            self._previous.report(transitions, self._units)
        if self._rollouts is not None:
            self._complete(self._rollouts, transitions, finals)
        slots, starts = transitions.acting, transitions.starts
        if not transitions.only_steps:
            self._recurrent_state[:, transitions.started] = 0
            if self._previous is not None:
                self._previous.start(transitions.started)
            if self._exploration is not None:
                self._exploration.start(transitions.started)
        if len(slots) == 0:
            return self._columns.actions(0)
        rows = self._model.batch_size(len(slots))
        observations = self._observed(slots, states, starts, rows)
        if self._rollouts is not None:
            begun = _rows(observations, slice(len(slots)))
            self._hand_over(self._rollouts.observe(slots, begun, starts))
        actions = self._choose(slots, observations)
        return actions if self._units is None else self._units.to_plant(actions)

    def _grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; the largest arrays, which may not fit, first."""
        if self._rollouts is not None:
            self._rollouts.grow(capacity)
        self._preprocessor.grow(capacity)
        if self._previous is not None:
            self._previous.grow(capacity)
        if self._exploration is not None:
            self._exploration.grow(capacity)
        self._recurrent_state = zero_padded(self._recurrent_state, capacity, axis=1)
        self._capacity = capacity

    def _complete(
        self, rollouts: Recorder[BatchT], transitions: Transitions, finals: Observations
    ) -> None:
        """Note what the actions before have led to, up to the end of episodes."""
        executed = self._executed
        if executed is not None and (len(transitions.executed) or executed.has_reports):
            chosen = rollouts.chosen(transitions.executed)
            slots, actions = executed.others(transitions, chosen)
            if len(slots):
                rollouts.executed(slots, actions)
        rewards = self._learnt(transitions.rewards)
        rollouts.reward(transitions.stepped, rewards, transitions.terminated)
        if transitions.only_steps:
            return
        rollouts.cut_last(transitions.given_up)
        truncated = transitions.truncated
        if len(truncated):
            observations = self._observed(truncated, finals, None)
            self._hand_over(rollouts.cut_off(truncated, observations))

    def _observed(
        self, slots: IntArray, states: Observations, starts: Array | None, rows: int = 0
    ) -> Observations:
        """Return what the network sees after new ``states`` of ``slots``."""
        observations = self._preprocessor.observe(slots, states, starts, rows)
        return (
            observations if self._previous is None else self._previous.joined(slots, observations)
        )

    def _learnt(self, rewards: Array) -> Array:
        """Return rewards [S] as they are learnt from: filtered, scaled, and cut to [-1, 1]."""
        if self._reward_filter is not None:
            rewards = self._reward_filter.filtered(rewards[:, np.newaxis])[:, 0]
        if self._reward_scale != 1:
            rewards = rewards * self._reward_scale
        return np.clip(rewards, -1, 1) if self._clip_rewards else rewards

    def _hand_over(self, rollouts: BatchT | None) -> None:
        if rollouts is not None:
            self._experience.put(rollouts)

    def _choose(self, slots: IntArray, observations: Observations) -> Array:
        """Choose actions for all with one policy, which may be replaced meanwhile."""
        policy, most = self._policy.current, self._most_at_once
        if len(slots) <= most:
            return self._choose_at_once(policy, slots, observations)
        count = len(slots)
        pieces = [slice(begin, min(begin + most, count)) for begin in range(0, count, most)]
        return np.concatenate(
            [
                self._choose_at_once(policy, slots[piece], _rows(observations, piece))
                for piece in pieces
            ]
        )

    def _choose_at_once(self, policy: Policy, slots: IntArray, observations: Observations) -> Array:
        before = self._state_before(slots)
        noise = self._noise(slots)
        choice = self._model.choose(policy.parameters, observations, before, noise)
        if self._is_recurrent:
            self._recurrent_state[:, slots] = choice.recurrent_state
        if self._rollouts is not None:
            self._rollouts.record(
                slots, choice.actions, choice.extras, before, policy.version.number
            )
        if self._previous is not None:
            self._previous.chose(slots, choice.actions)
        return choice.actions

    def _noise(self, slots: IntArray) -> Array:
        if self._exploration is None:
            return self._distribution.noise(self._random, len(slots))
        return self._exploration.draw(slots)

    def _state_before(self, slots: IntArray) -> Array:
        if self._is_recurrent:
            return self._recurrent_state[:, slots]
        return self._recurrent_state[:, : len(slots)]  # [2, B, 0]


def _rows(observations: Observations, which: slice) -> Observations:
    """Return some rows of all arrays."""
    if isinstance(observations, dict):
        some: Observations = mapped(lambda part: part[which], observations)
        return some
    return observations[which]
