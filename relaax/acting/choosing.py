"""Chooses actions of observations, by a policy's parameters, a noise and a recurrent state."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base.inference import ChoiceTimes
from relaax.learning.arrays import padded_size, zero_padded
from relaax.learning.distributions.base import ActionHead
from relaax.learning.exploration import NoiseSource
from relaax.learning.model import Choice, PolicyModel
from relaax.learning.networks.manifest import NetworkParameters
from relaax.learning.policy import Policy
from relaax.learning.rollouts import Columns
from relaax.observations import Observations

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

#: Larger batches are evaluated in pieces, unless ``warm_up`` has prepared for larger ones.
MOST_AT_ONCE = 128


class Chosen(NamedTuple):
    """A choice, the recurrent state before it, and the policy that was chosen with."""

    choice: Choice
    #: float32 [2, B, H]
    before: Array
    policy: Policy


class Chooser:
    """Evaluates ``model`` for the environments of an actor, and keeps their recurrent states.

    Each draw has noise of its own, unless ``exploration`` makes other noise.
    """

    def __init__(
        self,
        model: PolicyModel,
        distribution: ActionHead,
        columns: Columns,
        random: np.random.Generator,
        exploration: NoiseSource | None = None,
        most_at_once: int = MOST_AT_ONCE,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.model = model
        self.distribution = distribution
        self.most_at_once = most_at_once
        self._columns = columns
        self._random = random
        self._exploration = exploration
        self._clock = clock
        #: See ``BatchAgentBase.watch_choices``.
        self.observer: Callable[[ChoiceTimes], object] | None = None
        self._recurrent_state = columns.recurrent_state(0)
        self._is_recurrent = self._recurrent_state.shape[-1] > 0

    def warm_up(self, parameters: NetworkParameters, environments: int) -> None:
        """Trace and compile the network for every size of batch up to ``environments``."""
        self.most_at_once = max(self.most_at_once, padded_size(environments))
        count = 1
        while count <= self.most_at_once:
            observations = self._columns.observations(count)
            before = self._columns.recurrent_state(count)
            noise = self.distribution.noise(self._random, count)
            self.model.choose(parameters, observations, before, noise)
            count *= 2

    def grow(self, capacity: int) -> None:
        """Make room for slots below ``capacity``; MemoryError where there is none."""
        if self._exploration is not None:
            self._exploration.grow(capacity)
        self._recurrent_state = zero_padded(self._recurrent_state, capacity, axis=1)

    def start(self, slots: IntArray) -> None:
        """Begin episodes in ``slots``."""
        self._recurrent_state[:, slots] = 0
        if self._exploration is not None:
            self._exploration.start(slots)

    def choose(self, policy: Policy, slots: IntArray, observations: Observations) -> Chosen:
        """Choose for ``observations`` [B, ...] of ``slots``, ``most_at_once`` at most."""
        if self._is_recurrent:
            before = self._recurrent_state[:, slots]
        else:
            before = self._recurrent_state[:, : len(slots)]  # [2, B, 0]
        noise = self._noise(slots)
        began = self._clock()
        choice = self.model.choose(policy.parameters, observations, before, noise)
        if self.observer is not None:
            self.observer(_times(choice, self._clock() - began))
        if self._is_recurrent:
            self._recurrent_state[:, slots] = choice.recurrent_state
        if choice.version is not None:
            policy = replace(policy, version=choice.version)
        return Chosen(choice, before, policy)

    def _noise(self, slots: IntArray) -> Array:
        if self._exploration is None:
            return self.distribution.noise(self._random, len(slots))
        return self._exploration.draw(slots)


def _times(choice: Choice, seconds: float) -> ChoiceTimes:
    """Return where the ``seconds`` of a choice have gone: all that no server knows is the way."""
    if choice.served is None:
        return ChoiceTimes(seconds)
    queue, inference = choice.served
    return ChoiceTimes(inference, queue, seconds - queue - inference)
