"""Which policy acts in which slot of an actor."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from relaax.acting.pulling import PolicyPuller
from relaax.algorithm_base import (
    DEFAULT,
    EvaluatedPolicy,
    FloatVector,
    Values,
    ValueSource,
    Version,
)
from relaax.learning.exploration.ladder import SlotPlaces
from relaax.learning.networks.manifest import NetworkParameters
from relaax.learning.policy import CurrentPolicy, Policy, PolicyHolder, Seat
from relaax.steps import UNNAMED_AGENT, AgentName

IntArray = npt.NDArray[np.int64]

HeldT = TypeVar("HeldT")


class SlotPolicies(Protocol):
    """Tells each episode's policy, which may be another one in each slot."""

    def start(self, slots: IntArray, agents: Sequence[AgentName]) -> None:
        """Choose the policies of episodes that begin in ``slots`` [S], of ``agents`` [S].

        ``agents`` are empty where they have no names.
        """

    def forget(self, slots: IntArray) -> None:
        """Forget environments that have gone."""

    def groups(self, slots: IntArray) -> Iterator[tuple[PolicyHolder, IntArray]]:
        """Yield each policy that acts in ``slots`` [A], with the places in ``slots`` where it does.

        Whatever depends on the policy is in use until the next one is yielded.
        """

    def info(self, slot: int) -> EvaluatedPolicy | None:
        """Return the policy that the episode in ``slot`` is played with, if that is known."""

    def close(self) -> None:
        """Ask for newer parameters no longer."""


class PolicySource:
    """A ``ValueSource`` of one policy's values."""

    def __init__(self, parameters: ValueSource, name: str) -> None:
        self._parameters = parameters
        self._name = name

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the newest values of this policy, whatever ``policy`` is asked for."""
        return self._parameters.pull(known, self._name)


class HeldBySlot(Generic[HeldT]):
    """What is held for the episode of each slot; some slots hold the same object."""

    def __init__(self) -> None:
        self._of_slot: dict[int, HeldT] = {}

    def hold(self, slots: IntArray, held: Sequence[HeldT]) -> None:
        """Let ``slots`` [S] hold these [S]."""
        self._of_slot.update(zip(slots.tolist(), held, strict=True))

    def forget(self, slots: IntArray) -> None:
        """Forget environments that have gone."""
        for slot in slots.tolist():
            self._of_slot.pop(slot, None)

    def of(self, slot: int) -> HeldT | None:
        """Return what a slot holds, if anything."""
        return self._of_slot.get(slot)

    def all(self) -> list[HeldT]:
        """Return each object that is held, once."""
        return list({id(each): each for each in self._of_slot.values()}.values())

    def groups(self, slots: IntArray) -> Iterator[tuple[HeldT, IntArray]]:
        """Yield each object that ``slots`` hold, with the places in ``slots`` that hold it."""
        held = [self._of_slot[slot] for slot in slots.tolist()]
        for one in {id(each): each for each in held}.values():
            yield one, np.flatnonzero([each is one for each in held])


@dataclass(frozen=True)
class PinnedPolicy:
    """A ``PolicyHolder`` whose policy stays."""

    current: Policy


class PoliciesByName(Protocol):
    """The policies that episodes may be played with."""

    def of(self, name: str) -> PolicyHolder:
        """Return the policy of this name for an episode that begins.

        BridgeError where the parameters of a new name cannot be had.
        """

    def keep(self, names: Collection[str]) -> None:
        """Forget all others than these, which slots have."""

    def check(self) -> None:
        """Raise an error that no later call would mend, if any."""

    def close(self) -> None:
        """Ask for newer parameters no longer."""


class PulledPolicies:
    """``PoliciesByName`` that have parameters of their own, which a learner publishes.

    They come from ``source_of(name)``: before the first episode of a name here, and then every
    ``interval_s`` seconds as long as a slot has it. Newer ones are used at once, or, if it
    ``pins_episodes``, when an episode begins. ``default`` is the policy of its own name, which
    others keep up to date.
    """

    def __init__(
        self,
        default: CurrentPolicy,
        source_of: Callable[[str], ValueSource],
        unpack: Callable[[FloatVector], NetworkParameters],
        interval_s: float = 0.1,
        pins_episodes: bool = False,
    ) -> None:
        self._pins_episodes = pins_episodes
        self._source_of = source_of
        self._unpack = unpack
        self._by_name = {default.current.name: default}
        #: What episodes begin with, by name, where these are pinned.
        self._pinned: dict[str, PinnedPolicy] = {}
        self._puller = PolicyPuller(interval_s=interval_s)

    def of(self, name: str) -> PolicyHolder:
        """See PoliciesByName."""
        policy = self._newest(name)
        if not self._pins_episodes:
            return policy
        current, pinned = policy.current, self._pinned.get(name)
        if pinned is None or pinned.current is not current:
            pinned = self._pinned[name] = PinnedPolicy(current)
        return pinned

    def keep(self, names: Collection[str]) -> None:
        """See PoliciesByName: others are asked for no longer."""
        for name in self._by_name.keys() - {DEFAULT, *names}:
            self._puller.remove(self._by_name.pop(name))
            self._pinned.pop(name, None)

    def check(self) -> None:
        """See PoliciesByName: of an earlier name's source."""
        self._puller.check()

    def close(self) -> None:
        """See PoliciesByName."""
        self._puller.close()

    def _newest(self, name: str) -> CurrentPolicy:
        """Return the policy of a name with its newest parameters, which are asked for at first."""
        if name not in self._by_name:
            source = self._source_of(name)
            policy = CurrentPolicy(self._unpack, source.pull(), name)
            self._by_name[name] = policy
            self._puller.add(source, policy)
        return self._by_name[name]


class VariantPolicies:
    """``PoliciesByName`` whose parameters are made here of those of the ``default`` policy.

    ``variant_of`` returns the parameters of a name, of the default policy's vector: once for each
    version. Episodes are played to their end with the parameters that they begin with.
    """

    def __init__(
        self,
        default: PolicyHolder,
        variant_of: Callable[[str, FloatVector], FloatVector],
        unpack: Callable[[FloatVector], NetworkParameters],
    ) -> None:
        self._default = default
        self._variant_of = variant_of
        self._unpack = unpack
        #: The newest variants, by name.
        self._made: dict[str, PinnedPolicy] = {}

    def of(self, name: str) -> PolicyHolder:
        """See PoliciesByName."""
        default = self._default.current
        if name == default.name:
            return PinnedPolicy(default)
        made = self._made.get(name)
        if made is None or made.current.version != default.version:
            made = self._made[name] = PinnedPolicy(self._variant(name, default))
        return made

    def keep(self, names: Collection[str]) -> None:
        """See PoliciesByName."""
        self._made = {name: made for name, made in self._made.items() if name in names}

    def check(self) -> None:
        """See PoliciesByName: the source of the default policy raises its own errors."""

    def close(self) -> None:
        """See PoliciesByName: nothing is asked for."""

    def _variant(self, name: str, default: Policy) -> Policy:
        if default.vector is None:
            raise RuntimeError(f"policy {name!r}: the vector of the default policy is not kept")
        made = self._variant_of(name, default.vector)
        return replace(default, parameters=self._unpack(made), name=name)


class NamedPolicies:
    """Plays each episode with the policy whose name ``name_of`` returns at its beginning.

    ``policies`` has it. ``places`` are those of the slots.
    """

    def __init__(
        self, name_of: Callable[[Seat], str], policies: PoliciesByName, places: SlotPlaces
    ) -> None:
        self._name_of = name_of
        self._policies = policies
        self._places = places
        self._held: HeldBySlot[PolicyHolder] = HeldBySlot()
        #: Episodes that were begun, by place: an environment that connects again goes on there.
        self._begun: Counter[int] = Counter()

    def start(self, slots: IntArray, agents: Sequence[AgentName]) -> None:
        """See SlotPolicies; BridgeError where the parameters of a new name cannot be had.

        An error of an earlier name's source, which no later call would mend, is raised here.
        """
        self._policies.check()
        places = self._places.of(slots).tolist()
        begun = [self._begun[place] for place in places]
        self._begun.update(places)
        seats = map(Seat, places, agents or [UNNAMED_AGENT] * len(places), begun)
        self._held.hold(slots, [self._policies.of(self._name_of(seat)) for seat in seats])
        self._drop_unused()

    def forget(self, slots: IntArray) -> None:
        """See SlotPolicies."""
        self._held.forget(slots)
        self._drop_unused()

    def groups(self, slots: IntArray) -> Iterator[tuple[PolicyHolder, IntArray]]:
        """See SlotPolicies."""
        return self._held.groups(slots)

    def info(self, slot: int) -> EvaluatedPolicy | None:
        """See SlotPolicies."""
        held = self._held.of(slot)
        if held is None:
            return None
        return EvaluatedPolicy(held.current.version.number, held.current.global_t)

    def close(self) -> None:
        """See SlotPolicies."""
        self._policies.close()

    def _drop_unused(self) -> None:
        self._policies.keep({held.current.name for held in self._held.all()})
