"""Plays each episode with one policy, and learns nothing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from relaax.acting.policies import HeldBySlot
from relaax.acting.preprocessor import Preprocessor
from relaax.algorithm_base import EvaluatedPolicy, FloatVector, Values, ValueSource
from relaax.learning.exploration import NoiseSource
from relaax.learning.filters import Filters, Scale
from relaax.learning.model import PolicyModel
from relaax.learning.networks.manifest import NetworkParameters
from relaax.learning.policy import Policy
from relaax.steps import AgentName

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EvaluationParts:
    """What an ``Actor`` needs to make evaluators, beside what it has itself."""

    #: Where policies come from: whole vectors, with the statistics of filters behind them. None
    #: where another process has them: then it also decides which is the newest, at each step.
    source: ValueSource | None
    #: Makes parameters of the network's part of a vector.
    unpack: Callable[[FloatVector], NetworkParameters]
    #: Returns another preprocessor like the actor's, with these filters; None: states are filtered
    #: later.
    make_preprocessor: Callable[[Filters | None], Preprocessor]
    #: The actor's own.
    filters: Filters = field(default_factory=Filters)
    #: What chooses, where it is not the actor's own, which adds noise to its parameters.
    model: PolicyModel | None = None
    #: Makes exploration like the actor's; None where it draws samples of a distribution.
    make_noise: Callable[[np.random.Generator], NoiseSource] | None = None


@dataclass(frozen=True)
class _Pinned:
    """All that the choices of an episode depend on: a ``PolicyHolder``."""

    current: Policy
    scales: Sequence[Scale]


class PinnedPolicies:
    """``SlotPolicies`` that keep, for each slot, the policy with which its episode began.

    A ``ValueSink``, too: what another thread publishes here is what episodes begin with from
    then on.
    """

    def __init__(self, newest: Policy, parts: EvaluationParts) -> None:
        self.filters = parts.filters.still()
        self._unpack = parts.unpack
        #: Replaced as a whole.
        self._newest = _Pinned(self._clean(newest), self.filters.scales)
        self._held: HeldBySlot[_Pinned] = HeldBySlot()

    @property
    def current(self) -> Policy:
        """The policy that episodes begin with."""
        return self._newest.current

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

    def start(self, slots: IntArray, agents: Sequence[AgentName]) -> None:
        """Play what begins in ``slots`` with the newest policy, to the end."""
        self._held.hold(slots, [self._newest] * len(slots))

    def forget(self, slots: IntArray) -> None:
        """See SlotPolicies."""
        self._held.forget(slots)

    def groups(self, slots: IntArray) -> Iterator[tuple[_Pinned, IntArray]]:
        """See SlotPolicies; the filters of each are in use."""
        for pinned, places in self._held.groups(slots):
            self.filters.use(pinned.scales)
            yield pinned, places

    def info(self, slot: int) -> EvaluatedPolicy | None:
        """See SlotPolicies; a version of before a restart of the parameter server is not known."""
        pinned = self._held.of(slot)
        if pinned is None:
            return None
        version = pinned.current.version
        is_counted_on = version.incarnation == self._newest.current.version.incarnation
        return EvaluatedPolicy(version.number if is_counted_on else None, pinned.current.global_t)

    def close(self) -> None:
        """Do nothing: what publishes here is closed by its owner."""
