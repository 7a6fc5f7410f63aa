"""Plays each episode with one policy, and learns nothing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.acting.preprocessor import Preprocessor
from relaax.acting.pulling import PolicyPuller
from relaax.algorithm_base import (
    BatchAgentBase,
    EvaluatedPolicy,
    EvaluatorBase,
    FloatVector,
    Transitions,
    Values,
    VariableSource,
)
from relaax.learning.exploration import NoiseSource
from relaax.learning.filters import Filters, Scale
from relaax.learning.model import PolicyModel
from relaax.learning.networks.manifest import Parameters
from relaax.learning.policy import Policy
from relaax.learning.rollouts import Columns
from relaax.observations import Observations, mapped
from relaax.steps import States

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EvaluationParts:
    """What an ``Actor`` needs to make evaluators, beside what it has itself."""

    #: Where policies come from: whole vectors, with the statistics of filters behind them.
    source: VariableSource
    #: Makes parameters of the network's part of a vector.
    unpack: Callable[[FloatVector], Parameters]
    #: Returns another preprocessor like the actor's, with these filters.
    make_preprocessor: Callable[[Filters], Preprocessor]
    #: The actor's own.
    filters: Filters = field(default_factory=Filters)
    #: What chooses, where it is not the actor's own, which adds noise to its parameters.
    model: PolicyModel | None = None
    #: Makes exploration like the actor's; None where it draws samples of a distribution.
    make_noise: Callable[[np.random.Generator], NoiseSource] | None = None


@dataclass(frozen=True)
class _Pinned:
    """All that the choices of an episode depend on."""

    policy: Policy
    scales: Sequence[Scale]


class PinnedPolicies:
    """A ``PolicyHolder`` that keeps, for each slot, the policy with which its episode began.

    It is a ``VariableSink``, too: what another thread publishes here is what episodes begin with
    from then on.
    """

    def __init__(self, newest: Policy, parts: EvaluationParts) -> None:
        self.filters = parts.filters.still()
        self._unpack = parts.unpack
        #: Replaced as a whole.
        self._newest = _Pinned(self._clean(newest), self.filters.scales)
        self._of_slot: dict[int, _Pinned] = {}
        self._current = self._newest

    @property
    def current(self) -> Policy:
        """The policy of the slots that act now."""
        return self._current.policy

    def publish(self, values: Values) -> None:
        """Begin episodes with ``values`` from now on, unless they are the ones in use."""
        if values.vector is not None:
            own, scales = self.filters.separated(values.vector)
            policy = Policy(values.version, self._unpack(own), values.global_t)
            self._newest = _Pinned(policy, scales)

    def _clean(self, policy: Policy) -> Policy:
        """Return an actor's policy without the noise that it may have on its parameters."""
        if policy.vector is None:
            return policy
        return Policy(policy.version, self._unpack(policy.vector), policy.global_t)

    def pin(self, slots: IntArray) -> None:
        """Play what begins in ``slots`` with the newest policy, to the end."""
        newest = self._newest
        self._of_slot.update((slot, newest) for slot in slots.tolist())

    def forget(self, slots: IntArray) -> None:
        """Forget environments that have gone."""
        for slot in slots.tolist():
            self._of_slot.pop(slot, None)

    def groups(self, slots: IntArray) -> Iterator[IntArray]:
        """Yield places in ``slots`` that share a policy, which is in use meanwhile."""
        pinned = [self._of_slot[slot] for slot in slots.tolist()]
        for one in {id(each): each for each in pinned}.values():
            self._current = one
            self.filters.use(one.scales)
            yield np.flatnonzero([each is one for each in pinned])

    def info(self, slot: int) -> EvaluatedPolicy | None:
        """Return what the episode in ``slot`` is played with."""
        pinned = self._of_slot.get(slot)
        if pinned is None:
            return None
        version = pinned.policy.version
        is_counted_on = version.incarnation == self._newest.policy.version.incarnation
        return EvaluatedPolicy(version.number if is_counted_on else None, pinned.policy.global_t)


class Evaluator(EvaluatorBase):
    """Lets ``actor``, which records nothing, act with one policy after the other.

    ``actor`` acts with what ``policies`` holds; these are replaced by what comes from ``source``.
    """

    def __init__(
        self,
        actor: BatchAgentBase,
        policies: PinnedPolicies,
        source: VariableSource,
        columns: Columns,
    ) -> None:
        self._actor = actor
        self._columns = columns
        self._policies = policies
        self._puller = PolicyPuller(source, policies)

    def warm_up(self, environments: int) -> None:
        """Prepare the network for batches of up to so many environments."""
        self._actor.warm_up(environments)

    def open(self, slots: IntArray) -> None:
        """Make room for environments that have come; MemoryError when there is none."""
        self._actor.open(slots)

    def close_slots(self, slots: IntArray) -> None:
        """Forget environments that have gone."""
        self._actor.close_slots(slots)
        self._policies.forget(slots)

    def check(self, states: States) -> Observations:
        """Return states [B, ...] as the actor takes them; InvalidState for what it cannot use."""
        return self._actor.check(states)

    def check_executed(self, actions: Sequence[Any] | Array) -> Array:
        """Return actions as the actor takes them; they change nothing here."""
        return self._actor.check_executed(actions)

    def act(self, transitions: Transitions, states: Observations, finals: Observations) -> Array:
        """Choose actions [A, ...], with one evaluation of the network for each policy."""
        self._policies.pin(transitions.started)
        acting = transitions.acting
        actions: Array | None = None
        for places in self._policies.groups(acting):
            part, rows = _part(transitions, places), _rows(states, places)
            chosen = np.asarray(self._actor.act(part, rows, finals))
            if len(places) == len(acting):
                return chosen
            if actions is None:
                actions = np.empty((len(acting), *chosen.shape[1:]), chosen.dtype)
            actions[places] = chosen
        return self._columns.actions(0) if actions is None else actions

    def policies(self, slots: IntArray) -> Sequence[EvaluatedPolicy | None]:
        """Return what the episodes of ``slots`` are played with."""
        return [self._policies.info(slot) for slot in slots.tolist()]

    def close(self) -> None:
        """End what asks for policies, and the actor."""
        self._puller.close()
        self._actor.close()


def _part(transitions: Transitions, places: IntArray) -> Transitions:
    """Return those that act at ``places``, and what their last actions have led to."""
    acting, none = transitions.acting[places], transitions.acting[:0]
    stepped = np.isin(transitions.stepped, acting)
    executed = np.isin(transitions.executed, acting)
    return Transitions(
        stepped=transitions.stepped[stepped],
        rewards=transitions.rewards[stepped],
        terminated=transitions.terminated[stepped],
        truncated=none,
        ended=none,
        given_up=none,
        acting=acting,
        starts=transitions.starts[places],
        only_steps=False,
        executed=transitions.executed[executed],
        executed_actions=transitions.executed_actions[executed],
    )


def _rows(states: Observations, places: IntArray) -> Observations:
    rows: Observations = mapped(lambda array: array[places], states)
    return rows
