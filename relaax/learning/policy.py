"""The parameters that actions are chosen with."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from relaax.algorithm_base import DEFAULT, FloatVector, Values, Version
from relaax.learning.networks.manifest import NetworkParameters
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import ENDS
from relaax.steps import UNNAMED_AGENT, AgentName
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.metrics import Metrics


class PolicyUse:
    """Counts actions and episodes between two updates of the parameters; means once a second.

    Surreal's metrics of an actor (``on_parameter_fetched``, seed 000, "Actor"). Its publish delay
    is a difference of two machines' clocks, and may be negative. Here it is the age that the
    parameter server itself has measured. Actors and what pulls parameters may be two threads.

    Parameters that nothing was done with say nothing of acting: where there was no action since the
    update before, as where all environments evaluate, an update is not counted.
    """

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._means = IntervalMetrics(metrics, clock=clock)
        self._lock = threading.Lock()
        self._actions = self._episodes = 0

    def acted(self, steps: StepBatch) -> None:
        """Count the actions of ``steps``, and the episodes that end in them."""
        with self._lock:
            self._actions += steps.actions
            self._episodes += int(np.count_nonzero(steps.flags & ENDS))

    def updated(self, age_s: float | None) -> None:
        """Take note of other parameters, published ``age_s`` seconds ago if that is known."""
        with self._lock:
            if self._actions:
                if age_s is not None:
                    self._means.add("actor/publish delay", age_s)
                self._means.add("actor/actions per update", self._actions)
                self._means.add("actor/episodes per update", self._episodes)
                self._actions = self._episodes = 0
            self._means.store_if_due()


@dataclass(frozen=True)
class Policy:
    """Parameters at a version."""

    version: Version
    parameters: NetworkParameters
    #: The global step when it came.
    global_t: int = 0
    #: The vector that the parameters were made of, where that is kept.
    vector: FloatVector | None = None
    name: str = DEFAULT


@dataclass(frozen=True)
class Seat:
    """Where an episode is played: what the name of its policy may depend on."""

    #: The environment's place among all that train; see ``EnvironmentInfo``.
    place: int
    agent: AgentName = UNNAMED_AGENT
    #: How many episodes were begun there before.
    episode: int = 0


class PolicyHolder(Protocol):
    """What says which policy to act with."""

    @property
    def current(self) -> Policy:
        """The policy."""


class ActingPolicy(PolicyHolder, Protocol):
    """A ``PolicyHolder`` that knows how far the training is."""

    #: The global step as it was last heard of, which may be a moment ago.
    global_t: int


class CurrentPolicy:
    """The newest policy: a ``ValueSink`` that learners publish to and actors read.

    ``current`` is replaced as a whole, so that another thread may read it at any time. ``unpack``
    makes parameters of a flat vector, once for each version.
    """

    def __init__(
        self,
        unpack: Callable[[FloatVector], NetworkParameters],
        values: Values,
        name: str = DEFAULT,
    ) -> None:
        self._name = name
        if values.vector is None:
            raise RuntimeError("the first values of the parameter server came without their vector")
        self._unpack = unpack
        #: The global step as it was last heard of, which may be a moment ago.
        self.global_t = values.global_t
        self.current = self._policy(values, values.vector)

    def publish(self, values: Values) -> None:
        """Act and learn with ``values`` from now on, unless they are the ones in use.

        Their vector must not be changed after that: tensors may share its memory.
        """
        self.global_t = values.global_t
        if values.vector is not None:
            self.current = self._policy(values, values.vector)

    def _policy(self, values: Values, vector: FloatVector) -> Policy:
        return Policy(values.version, self._unpack(vector), values.global_t, vector, self._name)
