"""Chooses actions for many environments, and hands their rollouts on."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from relaax.acting.choosing import MOST_AT_ONCE, Chooser
from relaax.acting.evaluator import EvaluationParts, PinnedPolicies
from relaax.acting.executed_actions import ExecutedActions
from relaax.acting.policies import SlotPolicies
from relaax.acting.preprocessor import Preprocessor
from relaax.acting.pulling import PullingSink
from relaax.acting.recording import Recorder, Recording
from relaax.acting.remote import LocalInference, PlayedVersions, RemoteModel
from relaax.algorithm_base import (
    EnvironmentInfo,
    EvaluatedPolicy,
    Evaluation,
    EvaluatorBase,
    ExperienceSink,
    NullExperience,
    Transitions,
    ValueSource,
)
from relaax.algorithm_base.inference import Answering, ChoiceTimes
from relaax.algorithm_base.roles import Admission
from relaax.learning.action_units import ActionUnits
from relaax.learning.distributions.base import ActionHead
from relaax.learning.exploration import NoiseSource, NoNoise
from relaax.learning.exploration.ladder import SlotPlaces
from relaax.learning.filters import ZFilter
from relaax.learning.model import PolicyModel
from relaax.learning.policy import Policy, PolicyHolder
from relaax.learning.previous import PreviousStep
from relaax.learning.rollouts import Columns
from relaax.learning.team import TeamView
from relaax.observations import Observations, mapped
from relaax.steps import AgentName

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

BatchT = TypeVar("BatchT")


class Actor(EvaluatorBase, Generic[BatchT]):
    """Acts by the current policy; what it learns from is up to the ``ExperienceSink``.

    ``rollouts`` is None where nothing learns: then nothing is kept, and the sink is never called
    but to be warmed up and closed. ``Recording`` says what is recorded, with ``reward_filter``,
    ``reward_scale`` and ``clip_rewards``. Actions are returned in the plant's ``units``, cut to its
    bounds; likelihoods and rollouts are those of the actions as they were drawn. Without units they
    are returned as they were drawn, as discrete ones are. ``Chooser`` says how they are drawn, with
    ``exploration``, of which ``places`` says how much. With parts for ``evaluation`` it makes
    evaluators: actors that record nothing. ``executed`` knows which actions may be reported as
    executed; without it none may. ``previous`` are inputs of the network beside the observations.
    With ``policies`` another policy than ``policy`` may act in each slot. ``stamp`` is for labels
    of steps; see ``Recording``. ``remote`` chooses for other processes, or lets others choose; it
    is closed with the actor. ``team`` has the observations of other agents of an environment, which
    are joined to those of each. ``admission`` says which rollouts may be begun. ``played`` notes
    the versions that other processes choose by.
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
        policies: SlotPolicies | None = None,
        stamp: slice | None = None,
        remote: LocalInference | RemoteModel | None = None,
        team: TeamView | None = None,
        admission: Admission | None = None,
        played: PlayedVersions | None = None,
    ) -> None:
        self._preprocessor = preprocessor
        self._policy = policy
        self._policies = policies
        self._columns = columns
        self._chooser = Chooser(model, distribution, columns, random, exploration, most_at_once)
        self._recording: Recording[BatchT] | None = None
        if rollouts is not None:
            self._recording = Recording(
                rollouts,
                experience,
                columns,
                clip_rewards,
                reward_scale,
                reward_filter,
                executed,
                stamp,
                admission,
            )
        self._experience = experience
        self._random = random
        self._units = units
        self._evaluation = evaluation
        self._places = places or SlotPlaces()
        self._executed = executed
        self._previous = previous
        self._remote = remote
        self._team = team
        self._played = played
        #: By slot, where agents have names.
        self._agents: dict[int, AgentName] = {}
        self._capacity = 0
        #: Whether ``act`` was begun, and has not returned: it may have left before all that it took
        #: from ``rollouts`` was handed over.
        self._is_acting = False

    @property
    def learns(self) -> bool:
        """Whether it learns while it serves: whether rollouts are recorded."""
        return self._recording is not None

    def warm_up(self, environments: int) -> None:
        """Trace and compile the network for every size of batch up to ``environments``.

        For observations of the usual type; what learns prepares itself, too.
        """
        self._experience.warm_up()
        self._chooser.warm_up(self._policy.current.parameters, environments)

    def open(self, slots: IntArray) -> None:
        """Make room for environments that have come; MemoryError when there is none."""
        needed = int(slots.max(initial=-1)) + 1
        if needed > self._capacity:
            self._grow(max(needed, 2 * self._capacity))

    def connected(self, slots: IntArray, environments: Sequence[EnvironmentInfo]) -> None:
        """Take the places of environments among all of the training, and their teams."""
        self._places.introduce(slots, environments)
        if self._team is not None:
            self._team.connect(slots, environments)

    def close_slots(self, slots: IntArray) -> None:
        """Forget environments that have gone; hand over what they have begun.

        Not so after a call of ``act`` that was interrupted: steps before it may be missing.
        """
        if self._recording is not None:
            self._recording.forget(slots, is_complete=not self._is_acting)
        if self._policies is not None:
            self._policies.forget(slots)
        if self._played is not None:
            self._played.start(slots)
        for slot in slots.tolist() if self._agents else ():
            self._agents.pop(slot, None)

    def check(self, states: Sequence[Any] | Observations) -> Observations:
        """Return states [B, ...] as numbers of one type, by name if they have names.

        InvalidState for what is no such array.
        """
        checked = self._preprocessor.check(states)
        recording = self._recording
        return checked if recording is None else recording.rollouts.fitting(checked)

    def check_executed(self, actions: Sequence[Any] | Array) -> Array:
        """Return executed actions [X, ...] as they are sent; InvalidState for what does not fit."""
        if self._executed is None:
            return super().check_executed(actions)
        return self._executed.check(actions)

    def act(self, transitions: Transitions, states: Observations, finals: Observations) -> Array:
        """Complete the rows before, hand over the rollouts that are full, and choose actions."""
        self._is_acting = True
        if self._team is not None:
            states, finals = self._team.beside(transitions, states, finals)
        if self._previous is not None:
            self._previous.report(transitions, self._units)
        if self._recording is not None:
            self._complete(self._recording, transitions, finals)
        if not transitions.only_steps:
            self._start(transitions)
        actions = self._actions(transitions, states)
        self._is_acting = False
        return actions

    def evaluator(self, evaluation: Evaluation) -> EvaluatorBase:
        """Return what acts with the same network for environments that evaluate.

        It keeps one policy for each episode, unless another process has the policies.
        """
        parts = self._evaluation
        if parts is None:
            return super().evaluator(evaluation)
        policies = None if parts.source is None else PinnedPolicies(self._policy.current, parts)
        model = parts.model or self._chooser.model
        random, distribution = self._random.spawn(1)[0], self._chooser.distribution
        exploration: NoiseSource | None = NoNoise(distribution)
        if evaluation is Evaluation.STOCHASTIC:
            exploration = None if parts.make_noise is None else parts.make_noise(random)
        evaluator = Actor[Any](
            preprocessor=parts.make_preprocessor(None if policies is None else policies.filters),
            policy=policies or self._policy,
            model=model,
            distribution=distribution,
            columns=self._columns,
            rollouts=None,
            experience=_pulling(parts.source, policies),
            random=random,
            units=self._units,
            most_at_once=self._chooser.most_at_once,
            exploration=exploration,
            executed=self._executed,
            previous=self._previous and self._previous.anew(),
            team=self._team and self._team.anew(),
            policies=policies,
            played=PlayedVersions() if isinstance(model, RemoteModel) else None,
        )
        if self._chooser.observer is not None:
            evaluator.watch_choices(self._chooser.observer)
        return evaluator

    def inference(self) -> Answering:
        """Return what chooses for other processes by the same policies."""
        if isinstance(self._remote, LocalInference):
            return self._remote
        return super().inference()

    def watch_choices(self, observer: Callable[[ChoiceTimes], object]) -> None:
        """See BatchAgentBase."""
        self._chooser.observer = observer

    def policies(self, slots: IntArray) -> Sequence[EvaluatedPolicy | None]:
        """Return what the episodes of ``slots`` are played with, where each has its own policy.

        Or that of another process, where it was the same in all of an episode.
        """
        policies = self._policies or self._played
        return [None if policies is None else policies.info(slot) for slot in slots.tolist()]

    def close(self) -> None:
        """End what learns, and what asks for policies."""
        self._experience.close()
        if self._policies is not None:
            self._policies.close()
        if self._executed is not None:
            self._executed.close()
        if self._remote is not None:
            self._remote.close()

    def _grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; the largest arrays, which may not fit, first."""
        if self._recording is not None:
            self._recording.rollouts.grow(capacity)
        self._preprocessor.grow(capacity)
        if self._previous is not None:
            self._previous.grow(capacity)
        if self._team is not None:
            self._team.grow(capacity)
        self._chooser.grow(capacity)
        self._capacity = capacity

    def _complete(
        self, recording: Recording[BatchT], transitions: Transitions, finals: Observations
    ) -> None:
        """Note what the actions before have led to, up to the end of episodes."""
        recording.complete(transitions)
        truncated = transitions.truncated
        if len(truncated):
            recording.cut_off(truncated, self._observed(truncated, finals, None))

    def _start(self, transitions: Transitions) -> None:
        """Begin episodes."""
        started = transitions.started
        self._chooser.start(started)
        if self._played is not None:
            self._played.start(started)
        if self._previous is not None:
            self._previous.start(started)
        if transitions.agents:
            self._agents.update(zip(transitions.acting.tolist(), transitions.agents, strict=True))
        if self._policies is not None:
            named = self._agents
            agents = [named.get(slot, AgentName()) for slot in started.tolist()] if named else ()
            self._policies.start(started, agents)

    def _actions(self, transitions: Transitions, states: Observations) -> Array:
        """Choose the next actions, with one evaluation of the network for each policy."""
        slots, starts = transitions.acting, transitions.starts
        if len(slots) == 0:
            return self._columns.actions(0)
        if self._policies is None:
            return self._actions_of(self._policy, slots, states, starts)
        actions = self._columns.actions(0)
        for policy, places in self._policies.groups(slots):
            if len(places) == len(slots):
                return self._actions_of(policy, slots, states, starts)
            some = _rows(states, places)
            chosen = self._actions_of(policy, slots[places], some, starts[places])
            if len(actions) == 0:
                actions = np.empty((len(slots), *chosen.shape[1:]), chosen.dtype)
            actions[places] = chosen
        return actions

    def _actions_of(
        self, holder: PolicyHolder, slots: IntArray, states: Observations, starts: Array
    ) -> Array:
        """Begin a step in each of ``slots``, and choose all actions with one policy.

        It is the one that is current when what the steps complete has been handed over, which may
        be learnt from at once.
        """
        rows = self._chooser.model.batch_size(len(slots))
        observations = self._observed(slots, states, starts, rows)
        if self._recording is not None:
            self._recording.begin(slots, _rows(observations, slice(len(slots))), starts)
            policy = self._recording.admitted(slots, holder)
        else:
            policy = holder.current
        most, count = self._chooser.most_at_once, len(slots)
        if count <= most:
            actions = self._choose(policy, slots, observations)
        else:
            pieces = [slice(begin, min(begin + most, count)) for begin in range(0, count, most)]
            actions = np.concatenate(
                [self._choose(policy, slots[part], _rows(observations, part)) for part in pieces]
            )
        return actions if self._units is None else self._units.to_plant(actions)

    def _observed(
        self, slots: IntArray, states: Observations, starts: Array | None, rows: int = 0
    ) -> Observations:
        """Return what the network sees after new ``states`` of ``slots``."""
        observations = self._preprocessor.observe(slots, states, starts, rows)
        if self._previous is None:
            return observations
        return self._previous.joined(slots, observations)

    def _choose(self, policy: Policy, slots: IntArray, observations: Observations) -> Array:
        """Choose, and record the choices."""
        chosen = self._chooser.choose(policy, slots, observations)
        if self._recording is not None:
            self._recording.chose(slots, chosen, self._agents)
        if self._played is not None:
            self._played.chose(slots, chosen.policy.version)
        if self._previous is not None:
            self._previous.chose(slots, chosen.choice.actions)
        return chosen.choice.actions


def _pulling(source: ValueSource | None, policies: PinnedPolicies | None) -> ExperienceSink[Any]:
    """Return the sink of an evaluator, which pulls its policies if it has any."""
    nothing = NullExperience()
    if source is None or policies is None:
        return nothing
    return PullingSink(nothing, source, policies)


def _rows(observations: Observations, which: slice | IntArray) -> Observations:
    """Return some rows of all arrays."""
    if isinstance(observations, dict):
        some: Observations = mapped(lambda part: part[which], observations)
        return some
    return observations[which]
