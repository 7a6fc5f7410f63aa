"""Roles that one part of a training plays for another, each of them small.

A part is handed the roles that it needs and no more. One object may play several: a worker's link
to the parameter server is a ``StepCounter``, and its ``Parameters``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

FloatVector = npt.NDArray[np.float32]

RolloutsT_contra = TypeVar("RolloutsT_contra", contravariant=True)


@dataclass(frozen=True)
class Version:
    """The number of updates of values within one run of the parameter server."""

    number: int
    #: Random for each start of the parameter server, so that a restart never repeats a version.
    incarnation: int = 0


@dataclass(frozen=True)
class PublishedInfo:
    """How values were published; seed 000, "Parameter server"."""

    #: When, in seconds since 1970, by the parameter server's clock.
    time: float
    #: The learner's count of its steps.
    iteration: int
    #: The learner's own words.
    message: str
    #: Of the values: equal values have equal hashes, others have others.
    hash: str


@dataclass(frozen=True)
class Values:
    """The parameters of a policy at a version."""

    version: Version
    global_t: int
    #: float32 [size]; None means that the caller holds this version already.
    vector: FloatVector | None
    #: Seconds since they were published, by the clock of the process that served them; None where
    #: that is not known. Unlike ``PublishedInfo.time`` it may be compared on any machine.
    age_s: float | None = field(default=None, compare=False)
    #: How they were published; None where no learner has published any yet.
    info: PublishedInfo | None = None


@dataclass(frozen=True)
class Lineage:
    """The training that a learner continues: no other one may replace its publications."""

    #: The name of the training, which its first learner has drawn; empty where it has none.
    training: str = ""
    #: The newest step that the learner's checkpoints have.
    holds: int = 0
    #: The step that the next learner would begin with; it must hold that.
    resumes: int = 0
    #: Whether its values replace those of any other lineage.
    is_afresh: bool = False


@dataclass(frozen=True)
class Evaluations:
    """Scores of evaluated policies, for the learner that has published them."""

    #: The number of scores so far; later ones are asked for with it.
    count: int
    #: The learner's count of its steps when it published the policy, and an episode's score.
    scores: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class Statistics:
    """An update of the statistics of filters behind the values: it is merged with them."""

    #: float32 [statistics]: gathered since the last update.
    vector: FloatVector


@dataclass(frozen=True)
class Gradient:
    """An update that moves the values by a gradient."""

    #: float32 [size]
    vector: FloatVector
    #: The values that it was computed at.
    computed_with: Version | None = None
    #: Environment steps behind it.
    steps: int = 0
    #: Updates of their own, which are sent in the same call.
    statistics: Sequence[Statistics] = ()


@dataclass(frozen=True)
class NewValues:
    """An update that replaces the values."""

    #: float32 [size]
    vector: FloatVector
    #: The learner's count of its steps.
    iteration: int
    #: The learner's own words.
    message: str = ""
    #: The training that the learner continues.
    lineage: Lineage | None = None


Update: TypeAlias = Gradient | Statistics | NewValues

#: The policy of an algorithm that has one.
DEFAULT = "default"


class StepCounter(Protocol):
    """Counts environment steps."""

    def add(self, steps: int) -> int:
        """Add environment steps to the global step and return it."""


class ValueSource(Protocol):
    """Where the newest values come from."""

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the newest values of a policy; without their vector when ``known`` is current.

        Where learners publish, a policy has the values that the training began with, as version 0,
        until its first push. ValueError for a name that cannot be, and, where gradients move the
        values, for any policy but the default one.
        """


class Parameters(ValueSource, Protocol):
    """Where values come from, and updates go to: two verbs, wherever both ends are."""

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Move the values of a policy, or replace them, and return the newer ones.

        All in one call: a learner that needs three waits three times for the network, and a step
        that is counted apart from its gradient is lost, or counted twice, when a call fails. Values
        that were replaced are returned without a vector. ValueError for an update of another size,
        or with numbers that are not finite, and for a kind of update that the parameters do not
        take.
        """


class ValueSink(Protocol):
    """Where new values go."""

    def publish(self, values: Values) -> None:
        """Say that these are the values now; without a vector, that nothing has changed."""


@runtime_checkable
class ValueFeed(Protocol):
    """A source of values that hands on newer ones, at moments of its own choice."""

    def subscribe(self, sink: ValueSink) -> None:
        """Publish new values to ``sink`` from now on."""


class ExperienceSink(Protocol[RolloutsT_contra]):
    """Where rollouts go: to a learner, or to a buffer that a learner reads."""

    def warm_up(self) -> None:
        """Prepare, so that the first rollouts need not wait."""

    def put(self, rollouts: RolloutsT_contra) -> None:
        """Take rollouts; they belong to the sink from now on."""

    def close(self) -> None:
        """Release the sink's resources."""


@runtime_checkable
class Admission(Protocol):
    """Says which rollouts may be begun; an ``ExperienceSink`` may be one, too."""

    def admits(self, slots: Sequence[int], version: int) -> bool:
        """Return whether actions may be chosen for ``slots`` with parameters of ``version``.

        It may wait before it says no: then ask again, with the newest parameters.
        """
        ...

    def release(self, slots: Sequence[int]) -> None:
        """Take note that ``slots`` go on no more."""
        ...


class NullExperience:
    """An ``ExperienceSink`` that drops all rollouts: nothing is learnt from them."""

    def warm_up(self) -> None:
        """Do nothing."""

    def put(self, rollouts: object) -> None:
        """Drop the rollouts."""

    def close(self) -> None:
        """Do nothing."""


class MetricsSink(Protocol):
    """Where scalars go."""

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Store ``y`` under ``name`` at ``x``, which defaults to the global step."""
