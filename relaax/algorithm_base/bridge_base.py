"""The transport between workers and the parameter server."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import Protocol, runtime_checkable

from relaax.algorithm_base.roles import (
    Evaluations,
    FloatVector,
    Lineage,
    Publication,
    PublishedInfo,
    Values,
    Version,
    Wanted,
)
from relaax.telemetry.metrics import Metrics


class Phase(Enum):
    """What the parameter server is doing."""

    TRAINING = "training"
    #: The training is over; values are served on.
    SERVING = "serving"
    #: The training is over; the parameter server is about to exit.
    CLOSING = "closing"


class BridgeBase(ABC):
    """What a worker asks of the parameter server.

    The same interface stands at both ends: the worker calls a stub, and the call arrives at the
    object that ``ParameterServerBase.bridge()`` returns. There, many threads call it at once.

    A bridge is a ``StepCounter``, a ``VariableSource`` and a ``GradientSink`` by the methods below;
    what needs no more than one of these takes that role.
    """

    @abstractmethod
    def increment_global_t(self, steps: int = 1) -> int:
        """Add environment steps to the global step and return it."""

    @abstractmethod
    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """Apply one float32 vector, computed with the values of ``computed_with``."""

    @abstractmethod
    def get_values(self, known: Version | None = None) -> Values:
        """Return the values; their vector may be None when ``known`` is current."""

    @abstractmethod
    def metrics(self) -> Metrics:
        """Return where scalars go."""

    def synchronize(
        self, gradients: FloatVector, steps: int, computed_with: Version | None = None
    ) -> Values:
        """Apply gradients, count their steps and return newer values: one call where it can be."""
        self.apply_gradients(gradients, computed_with)
        self.increment_global_t(steps)
        return self.get_values(computed_with)

    def publish_values(
        self, vector: FloatVector, iteration: int, message: str = "", lineage: Lineage | None = None
    ) -> PublishedInfo:
        """Serve ``vector`` [size] from now on, as a ``Publisher``.

        ``lineage`` says what the learner continues. ValueError where values are moved by gradients,
        and for a lineage that does not continue what is published.
        """
        raise ValueError("the values of this algorithm are moved by gradients, and not published")

    def fetch(self, wanted: Wanted, known_hash: str = "") -> Publication:
        """Return what was published last, as far as it is wanted.

        The values come only if they are not those of ``known_hash``.
        """
        return Publication(None, None, "")

    def evaluations(self, after: int = 0) -> Evaluations:
        """Return the scores of evaluations of what was published, behind the first ``after``.

        With a count that is larger than that of this parameter server, which has started again,
        all are returned. By default there are none.
        """
        return Evaluations(0)

    def phase(self) -> Phase:
        """Return whether the training goes on."""
        return Phase.TRAINING

    def places(self, environments: Sequence[int]) -> Sequence[int]:
        """Return the place of each of the caller's environments among all of the training.

        environments: all that the caller serves, by numbers of its own. A bridge that does not know
        of others, as this one, gives these numbers back.
        """
        return environments

    def wait_at_most(self, seconds: float) -> None:
        """Let calls for values raise ParameterServerAway where it is away for so long.

        A bridge without such a limit ignores it.
        """

    def close(self) -> None:
        """Release the transport."""

    def add(self, steps: int) -> int:
        """Count steps, as a ``StepCounter``."""
        return self.increment_global_t(steps)

    def get(self, known: Version | None = None) -> Values:
        """Return the newest values, as a ``VariableSource``."""
        return self.get_values(known)

    def apply(self, gradient: FloatVector, steps: int, computed_with: Version | None) -> Values:
        """Apply a gradient, as a ``GradientSink``."""
        return self.synchronize(gradient, steps, computed_with)


class RunningParameterServer(Protocol):
    """A bridge that listens."""

    def set_phase(self, phase: Phase) -> None:
        """Say to every caller from now on what the parameter server is doing."""

    def all_know(self) -> bool:
        """Return whether all who asked lately have been told it; True if that is not known."""

    def stop(self, grace_s: float) -> None:
        """Refuse new calls, give running ones ``grace_s`` seconds and close."""


@runtime_checkable
class RefusesCalls(Protocol):
    """A ``RunningParameterServer`` that can be as if it were away while its process saves.

    One that cannot lets calls in until it stops; what these change then is not saved.
    """

    def refuse_calls(self) -> None:
        """Answer no more calls of workers and learners, once those that have begun are over."""


class BridgeControlBase(ABC):
    """Makes both ends of a bridge."""

    @abstractmethod
    def parameter_server_stub(self, parameter_server_url: str) -> BridgeBase:
        """Return the worker's end for a parameter server at ``host:port``."""

    @abstractmethod
    def start_parameter_server(self, address: str, service: BridgeBase) -> RunningParameterServer:
        """Listen at ``host:port`` and hand calls to ``service``; OSError if the port is in use."""
