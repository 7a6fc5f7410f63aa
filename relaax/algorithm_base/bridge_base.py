"""The link between workers and the parameter server, and the transport of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Protocol, runtime_checkable

from relaax.algorithm_base.roles import (
    DEFAULT,
    Evaluations,
    FloatVector,
    Gradient,
    Lineage,
    NewValues,
    Update,
    Values,
    Version,
)
from relaax.errors import ConfigurationError
from relaax.telemetry.metrics import Metrics


class Phase(Enum):
    """The phase of a training, as the parameter server reports it."""

    TRAINING = "training"
    #: The training is over; values are served on.
    SERVING = "serving"
    #: The training is over; the parameter server is about to exit.
    CLOSING = "closing"


class ParameterLink(ABC):
    """The calls of workers and learners to the parameter server.

    The same interface stands at both ends: the worker calls a client, and the call arrives at the
    object that ``ParameterServerBase.bridge()`` returns. There, many threads call it at once.

    It plays the roles ``Parameters`` and ``StepCounter``. An agent may use the seed's names for
    these, at the end of the class.
    """

    #: Returns the lineage of new values at the learner's step, for those that come without one; set
    #: by a learner's process.
    lineage_at: Callable[[int], Lineage] | None = None

    @abstractmethod
    def add(self, steps: int) -> int:
        """Add environment steps to the global step and return it."""

    @abstractmethod
    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """See Parameters."""

    @abstractmethod
    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """See Parameters."""

    @abstractmethod
    def metrics(self) -> Metrics:
        """Return where scalars go."""

    def evaluations(self, after: int = 0) -> Evaluations:
        """Return the scores of evaluations of published values, behind the first ``after``.

        With a count that is larger than that of this parameter server, which has started again,
        all are returned. By default there are none.
        """
        return Evaluations(0)

    def phase(self) -> Phase:
        """Return whether the training goes on."""
        return Phase.TRAINING

    def places(self, environments: Sequence[int]) -> Sequence[int]:
        """Return the place of each of the caller's environments among all of the training.

        environments: all that the caller serves, by numbers of its own. A link that does not know
        of others, as this one, gives these numbers back.
        """
        return environments

    def wait_at_most(self, seconds: float) -> None:
        """Let calls for values raise ParameterServerAway where it is away for so long.

        A link without such a limit ignores it.
        """

    def follow(self, identifier: str) -> None:
        """Pull this version of the parameter database from now on, in the place of the newest one.

        identifier: a number, a tag, or a query as JSON. A pull raises NotThereYet as long as there
        is no such version. ConfigurationError for a link that has no database at its other end.
        """
        raise ConfigurationError(
            f"--policy-identifier {identifier}: this algorithm's parameter server, or one in "
            "shards, has no parameter database: leave it out"
        )

    def report_to(self, stream: str) -> None:
        """Report evaluated episodes to the evaluation managers of a stream, from now on.

        ConfigurationError for a link that has no database at its other end.
        """
        raise ConfigurationError(
            f"--eval-stream {stream}: this algorithm's parameter server, or one in shards, has no "
            "parameter database, and so no evaluation managers: leave it out"
        )

    def copy_metrics_to(self, metrics: Metrics) -> None:
        """Store metrics there, too, from now on.

        ConfigurationError for a link that cannot.
        """
        raise ConfigurationError(
            "--wandb-runs: this algorithm's parameter server, or one in shards, has a link that "
            "copies no metrics: leave it out"
        )

    def close(self) -> None:
        """Release the transport."""

    def with_lineage(self, new: NewValues) -> NewValues:
        """Return new values with their lineage, or with the one of this link's learner."""
        if new.lineage is not None or self.lineage_at is None:
            return new
        return replace(new, lineage=self.lineage_at(new.iteration))

    def increment_global_t(self, steps: int = 1) -> int:
        """Add environment steps to the global step and return it."""
        return self.add(steps)

    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """Apply one float32 vector, computed with the values of ``computed_with``."""
        self.push(Gradient(gradients, computed_with))

    def get_values(self, known: Version | None = None) -> Values:
        """Return the values; their vector may be None when ``known`` is current."""
        return self.pull(known)

    def synchronize(
        self, gradients: FloatVector, steps: int, computed_with: Version | None = None
    ) -> Values:
        """Apply gradients, count their steps and return newer values."""
        return self.push(Gradient(gradients, computed_with, steps))


class BridgeBase(ParameterLink):
    """A link in the seed's own terms, for algorithms that bring one: derive from it.

    It has one policy. Nothing within RELAAX derives from it.
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

    def synchronize(
        self, gradients: FloatVector, steps: int, computed_with: Version | None = None
    ) -> Values:
        """Apply gradients, count their steps and return newer values: one call where it can be."""
        self.apply_gradients(gradients, computed_with)
        self.increment_global_t(steps)
        return self.get_values(computed_with)

    def add(self, steps: int) -> int:
        """Count steps, as a ``StepCounter``."""
        return self.increment_global_t(steps)

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the newest values of the only policy."""
        require_default(policy)
        return self.get_values(known)

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Apply a gradient; ValueError for the statistics of filters, which the seed had not."""
        require_default(policy)
        gradient = gradient_of(update)
        if gradient.statistics:
            raise ValueError("this bridge takes no statistics of filters")
        return self.synchronize(gradient.vector, gradient.steps, gradient.computed_with)


def require_default(policy: str) -> None:
    """Raise ValueError for the name of another policy than the only one."""
    if policy != DEFAULT:
        raise ValueError(f"there is no policy {policy!r}: these parameters have one, {DEFAULT!r}")


def gradient_of(update: Update) -> Gradient:
    """Return a gradient; ValueError for any other update, where gradients alone move the values."""
    if not isinstance(update, Gradient):
        raise ValueError("the values of this algorithm are moved by gradients, and not published")
    return update


class RunningParameterServer(Protocol):
    """A bridge that listens."""

    def set_phase(self, phase: Phase) -> None:
        """Answer every caller with this phase from now on."""

    def all_know(self) -> bool:
        """Return whether all callers of the last seconds know it; True if that is not known."""

    def stop(self, grace_s: float) -> None:
        """Refuse new calls, give running ones ``grace_s`` seconds and close."""


@runtime_checkable
class RefusesCalls(Protocol):
    """A ``RunningParameterServer`` that can be as if it were away while its process saves.

    Any other lets calls in until it stops; changes by these are not saved.
    """

    def refuse_calls(self) -> None:
        """Answer no more calls of workers and learners, once those that have begun are over."""


class BridgeControlBase(ABC):
    """Makes both ends of a bridge."""

    @abstractmethod
    def parameter_server_stub(self, parameter_server_url: str) -> ParameterLink:
        """Return the worker's end for a parameter server at ``host:port``."""

    @abstractmethod
    def start_parameter_server(
        self, address: str, service: ParameterLink
    ) -> RunningParameterServer:
        """Listen at ``host:port`` and hand calls to ``service``; OSError if the port is in use."""
