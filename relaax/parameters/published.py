"""Parameters that a learner publishes: policies by name, each replaced as a whole."""

import base64
import hashlib
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import (
    DEFAULT,
    FloatVector,
    Lineage,
    NewValues,
    ParameterLink,
    PublishedInfo,
    Update,
    ValueFeed,
    Values,
    ValueSink,
    Version,
)
from relaax.algorithm_base.checkpoint import POLICIES
from relaax.errors import CheckpointMismatch, NotContinued
from relaax.parameters.parameter_store import Snapshot, Store, frozen_copy

Array = npt.NDArray[Any]

_log = logging.getLogger(__name__)

#: A training has at most so many policies beside the default one.
MOST_POLICIES = 4096

#: A checkpoint keeps so many bytes of a message: its tensors have the same shapes each time.
MESSAGE_BYTES = 256

#: The learner's steps are remembered for so many of the newest versions.
MOST_VERSIONS = 100_000

#: The longest name of a training.
_NAME_BYTES = 64

#: Names of policies are part of the names of a checkpoint's tensors.
_NAME = re.compile(r"[\w.:-]{1,64}")

#: Names of a policy's tensors in a checkpoint: how it was published, and by which training, which
#: checkpoints of earlier versions lack.
_TIME, _ITERATION, _MESSAGE = "published/time", "published/iteration", "published/message"
_TRAINING, _RESUMES = "published/training", "published/resumes"

#: Beside these, of policies but the default one: the vector, and its version with the iteration.
_VECTOR, _COUNTS = "/parameters", "/counts"

_ADVICE = (
    "Give the learner the checkpoints that it has lost, or connect it to the parameter server of "
    "its own training; with --start-afresh its values replace those that are published"
)


class PublishedSource:
    """A ``ValueSource`` whose versions are the learner's own count of its steps.

    So a learner can say how old the parameters are that an action was chosen with. Until something
    is published, there are the initial values, as version 0. The global step of values is 0.
    """

    def __init__(self, link: ParameterLink) -> None:
        self._link = link
        #: The link's version of the values that were returned last.
        self._version: Version | None = None

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the newest values; without their vector if they were returned last.

        Those of another policy than the default one have its own versions.
        """
        if policy != DEFAULT:
            return self._link.pull(known, policy)
        found = self._link.pull(None if known is None else self._version)
        self._version = found.version
        return _counted_by_learner(found)


class PublishedFeed(PublishedSource):
    """The same of a link that is a ``ValueFeed``: newer values come at the link's own moments."""

    def __init__(self, link: ParameterLink, feed: ValueFeed) -> None:
        super().__init__(link)
        self._feed = feed

    def subscribe(self, sink: ValueSink) -> None:
        """See ValueFeed."""
        self._feed.subscribe(_LearnersCount(sink))


class _LearnersCount:
    """Hands values on with the learner's count as their version."""

    def __init__(self, sink: ValueSink) -> None:
        self._sink = sink

    def publish(self, values: Values) -> None:
        """See ValueSink."""
        self._sink.publish(_counted_by_learner(values))


def published_source(link: ParameterLink) -> PublishedSource:
    """Return the values of a link by the learner's count; a ``ValueFeed`` where the link is one."""
    return PublishedFeed(link, link) if isinstance(link, ValueFeed) else PublishedSource(link)


def _counted_by_learner(values: Values) -> Values:
    iteration = 0 if values.info is None else values.info.iteration
    return replace(values, version=Version(iteration), global_t=0)


@dataclass(frozen=True)
class _Published:
    """The values of a policy, and how they were published."""

    vector: FloatVector
    #: How often the vector has changed.
    version: int = 0
    info: PublishedInfo | None = None
    lineage: Lineage = field(default_factory=Lineage)
    #: When, by the stopwatch of this process; None if it has not seen it.
    at: float | None = None

    @property
    def iteration(self) -> int:
        """The learner's count of its steps; -1 before anything is published."""
        return -1 if self.info is None else self.info.iteration


class PublishedParameters(Store):
    """Policies that learners publish, all of one size; there may be thousands.

    Until a policy is published, it is ``initial`` float32 [size], as version 0: an actor may begin
    with a policy before its learner does.
    """

    def __init__(
        self,
        initial: FloatVector,
        clock: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._initial = _Published(frozen_copy(initial))
        self._policies: dict[str, _Published] = {}
        self._clock = clock
        #: Never runs backwards, as ``clock`` may.
        self._stopwatch = stopwatch
        #: The training that has last shown --start-afresh.
        self._afresh: str | None = None
        #: The learner's count of its steps by version of the default policy, for the newest ones.
        self._iterations: dict[int, int] = {}

    @property
    def version(self) -> int:
        """Number of changes of the default policy."""
        return self._published(DEFAULT).version

    @property
    def iteration(self) -> int:
        """The learner's count of its steps when it published last; -1 before."""
        return self._published(DEFAULT).iteration

    def iteration_of(self, version: int) -> int | None:
        """Return the learner's count of its steps when it published a version, if that is known.

        It is not, where the learner has gone back to an earlier step since.
        """
        with self._lock:
            return self._iterations.get(version)

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Replace the values of a policy; see ``Parameters``.

        ValueError for a gradient, for a name that cannot be, and for a policy too many;
        NotContinued for values of a learner whose lineage does not continue the published ones. The
        same values again keep their version.
        """
        if not isinstance(update, NewValues):
            raise ValueError(
                "the values of this algorithm are published, and not moved by gradients"
            )
        shown = update.lineage or Lineage(holds=update.iteration)
        if len(shown.training.encode()) > _NAME_BYTES:
            raise ValueError(f"the name of a training has at most {_NAME_BYTES} bytes")
        _require_name(policy)
        self._require_replacement(update.vector, policy)
        vector = frozen_copy(update.vector)
        info = PublishedInfo(self._clock(), update.iteration, update.message, hash_of(vector))
        with self._lock:
            if not self._is_frozen:
                self._publish(policy, vector, info, shown)
        return replace(self.pull(policy=policy), vector=None)

    def snapshot(self) -> Snapshot:
        """Return the content of a checkpoint."""
        with self._lock:
            policies, global_t = dict(self._policies), self._global_t
        default = policies.pop(DEFAULT, self._initial)
        slots = _tensors(default)
        for name, each in policies.items():
            slots[f"{POLICIES}{name}{_VECTOR}"] = each.vector
            slots[f"{POLICIES}{name}{_COUNTS}"] = np.array([each.version, each.iteration])
            slots |= {f"{POLICIES}{name}/{key}": of_it for key, of_it in _tensors(each).items()}
        return Snapshot(default.vector, slots, global_t, default.version)

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from ``snapshot``; CheckpointMismatch for a policy that is damaged."""
        slots = snapshot.slots
        default = _restored(frozen_copy(snapshot.parameters), snapshot.version, slots)
        policies = {DEFAULT: default}
        for key in slots:
            if key.startswith(POLICIES) and key.endswith(_VECTOR):
                name = key.removeprefix(POLICIES).removesuffix(_VECTOR)
                policies[name] = self._restored_other(name, slots, default.lineage)
        with self._lock:
            self._global_t, self._policies = snapshot.global_t, policies
            self._iterations = {} if default.info is None else {default.version: default.iteration}

    def _restored_other(
        self, name: str, slots: Mapping[str, Array], lineage: Lineage
    ) -> _Published:
        """Return another policy than the default one.

        Earlier versions kept its vector and counts alone; its lineage is the default one's then.
        """
        begin = f"{POLICIES}{name}"
        vector = slots[f"{begin}{_VECTOR}"]
        try:
            self._require_replacement(vector, name)
            version, iteration = slots[f"{begin}{_COUNTS}"].tolist()
            old = _Published(vector, version, PublishedInfo(0.0, iteration, "", ""), lineage)
            tensors = {
                key: slots.get(f"{begin}/{key}", each) for key, each in _tensors(old).items()
            }
            return _restored(frozen_copy(vector), version, tensors)
        except (KeyError, ValueError, IndexError) as error:
            raise CheckpointMismatch(f"policy {name!r} is damaged: {error}") from error

    def _published(self, policy: str) -> _Published:
        return self._policies.get(policy, self._initial)

    def _newest(self, policy: str) -> Values:
        _require_name(policy)
        with self._lock:
            found, global_t = self._published(policy), self._global_t
            age_s = None if found.at is None else self._stopwatch() - found.at
        return Values(Version(found.version), global_t, found.vector, age_s, found.info)

    def _publish(
        self, policy: str, vector: FloatVector, info: PublishedInfo, shown: Lineage
    ) -> None:
        """Replace the values of a policy, under the lock."""
        before, others = self._published(policy), self._policies.keys() - {DEFAULT, policy}
        if policy != DEFAULT and len(others) >= MOST_POLICIES:
            raise ValueError(f"policy {policy!r}: a training has {MOST_POLICIES} at most")
        if policy == DEFAULT:
            self._say_of_afresh(before, shown, info.iteration)
        require_continued(before.lineage, max(before.iteration, 0), shown, info.iteration)
        is_other = before.info is None or before.info.hash != info.hash
        now = _Published(
            vector if is_other else before.vector,
            before.version + is_other,
            info,
            shown,
            self._stopwatch(),
        )
        if policy == DEFAULT:
            _say_of_gap(before, now, self._global_t)
            self._note_iteration(before, now)
        self._policies[policy] = now
        self.publications += 1

    def _note_iteration(self, before: _Published, now: _Published) -> None:
        if now.iteration < before.iteration:
            self._iterations.clear()
        self._iterations[now.version] = now.iteration
        if len(self._iterations) > MOST_VERSIONS:
            del self._iterations[next(iter(self._iterations))]

    def _say_of_afresh(self, before: _Published, shown: Lineage, iteration: int) -> None:
        """Say if --start-afresh has no effect: left in a configuration, it may have one later."""
        if not shown.is_afresh or shown.training == self._afresh:
            return
        self._afresh = shown.training
        own = replace(shown, is_afresh=False)
        try:
            require_continued(before.lineage, max(before.iteration, 0), own, iteration)
        except NotContinued:
            return
        _log.warning(
            "--start-afresh has no effect: there is nothing that training %s does not continue. "
            "Take it away, since it would replace whatever is published at a later start",
            shown.training,
        )

    def _require_replacement(self, vector: FloatVector, policy: str) -> None:
        """Raise ValueError unless ``vector`` has the size of the others and is finite."""
        whose, size = (
            "" if policy == DEFAULT else f" of policy {policy!r}",
            self._initial.vector.shape,
        )
        if vector.shape != size:
            raise ValueError(
                f"the parameters{whose} have shape {vector.shape}, not {size}: do the learner and "
                "the parameter server read one configuration?"
            )
        if not np.isfinite(vector).all():
            raise ValueError(f"the parameters{whose} are not finite")


def require_continued(before: Lineage, published: int, shown: Lineage, iteration: int) -> None:
    """Raise NotContinued for a publication that would replace one that it does not continue.

    ``published`` and ``iteration`` are the learners' counts of their steps: nothing is lost with
    one of 0. A learner that goes on from its newest checkpoint may be behind its publications
    since then; one that shows neither a training nor a checkpoint may not.
    """
    if shown.is_afresh or published == 0:
        return
    if shown.training != before.training:
        raise NotContinued(
            f"a learner would publish step {iteration:,} of {_named(shown)}, which does not "
            f"continue step {published:,} of {_named(before)}, which is published. {_ADVICE}"
        )
    if not shown.training and not shown.resumes and iteration < published:
        raise NotContinued(
            f"a learner would publish step {iteration:,} of {_named(shown)}, and shows no "
            f"checkpoint that it goes on from: step {published:,} is published. {_ADVICE}"
        )
    if shown.holds < before.resumes:
        raise NotContinued(
            f"a learner would publish step {iteration:,} of {_named(shown)}, whose newest "
            f"checkpoint is of step {shown.holds:,}: step {published:,} is published, and a "
            f"checkpoint of step {before.resumes:,} was saved before. {_ADVICE}"
        )


def _named(lineage: Lineage) -> str:
    return f"training {lineage.training}" if lineage.training else "a training without a name"


def _say_of_gap(before: _Published, now: _Published, global_t: int) -> None:
    """Say if steps of the learner are lost, or not known here."""
    if before.info is None:
        if now.iteration > 0:
            _log.warning(
                "the learner goes on from its step %d, and nothing of that is known here: the "
                "global step is %d. Has this parameter server lost its checkpoints?",
                now.iteration,
                global_t,
            )
    elif now.lineage.training != before.lineage.training and before.iteration > 0:
        _log.warning(
            "step %d of training %s is replaced by step %d of training %s (--start-afresh)",
            before.iteration, before.lineage.training, now.iteration, now.lineage.training,
        )  # fmt: skip
    elif now.iteration < before.iteration:
        _log.warning(
            "the learner goes on from step %d, its last checkpoint: %d steps that it had "
            "published after that are lost (--checkpoint-interval)",
            now.iteration, before.iteration - now.iteration,
        )  # fmt: skip


def hash_of(vector: FloatVector) -> str:
    """Return a text of 22 characters that other values do not have."""
    digest = hashlib.blake2b(vector.data, digest_size=16).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _require_name(policy: str) -> None:
    if _NAME.fullmatch(policy) is None:
        raise ValueError(
            f"policy {policy!r}: a name has 1 to 64 letters, digits and characters of '_.:-'"
        )


def _tensors(policy: _Published) -> dict[str, Array]:
    """Return a policy's tensors in a checkpoint, but for its vector and version."""
    info = policy.info or PublishedInfo(0.0, -1, "", "")
    return {
        _TIME: np.array([info.time]),
        _ITERATION: np.array([info.iteration]),
        _MESSAGE: _padded(info.message, MESSAGE_BYTES),
        _TRAINING: _padded(policy.lineage.training, _NAME_BYTES),
        _RESUMES: np.array([policy.lineage.resumes]),
    }


def _restored(vector: FloatVector, version: int, tensors: Mapping[str, Array]) -> _Published:
    """Return a policy with the ``tensors`` of a checkpoint."""
    iteration = int(tensors[_ITERATION][0])
    if iteration < 0:
        return _Published(vector, version)
    info = PublishedInfo(
        float(tensors[_TIME][0]), iteration, _unpadded(tensors[_MESSAGE]), hash_of(vector)
    )
    lineage = Lineage(_unpadded(tensors[_TRAINING]), resumes=int(tensors[_RESUMES][0]))
    return _Published(vector, version, info, lineage)


def _padded(text: str, length: int) -> Array:
    """Return the first bytes of a text in UTF-8: uint8 [length], zeros behind them."""
    return np.frombuffer(text.encode()[:length].ljust(length, b"\0"), np.uint8)


def _unpadded(padded: Array) -> str:
    return padded.tobytes().rstrip(b"\0").decode(errors="ignore")
