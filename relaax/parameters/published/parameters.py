"""Parameters that a learner publishes, as the parameter server keeps them."""

import base64
import hashlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import (
    DEFAULT,
    FloatVector,
    Lineage,
    ParameterLink,
    PublishedInfo,
    Values,
    Version,
)
from relaax.errors import NotContinued
from relaax.parameters.parameter_store import Snapshot, frozen_copy
from relaax.parameters.published.lineage import require_continued
from relaax.parameters.published.policies import Policies, require_replacement

_log = logging.getLogger(__name__)

#: A checkpoint keeps so many bytes of a message: its tensors have the same shapes each time.
MESSAGE_BYTES = 256

#: The learner's steps are remembered for so many of the newest versions.
MOST_VERSIONS = 100_000

#: The slots of a checkpoint that say what was published.
_TIME, _ITERATION, _MESSAGE = "published/time", "published/iteration", "published/message"

#: Those that say whose it was; checkpoints of before there were names have none.
TRAINING, RESUMES = "published/training", "published/resumes"

#: The longest name of a training.
_NAME_BYTES = 64


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
        iteration = 0 if found.info is None else found.info.iteration
        return replace(found, version=Version(iteration), global_t=0)


class PublishedParameters:
    """One flat vector that is replaced as a whole, and the global step.

    Until something is published, actors act with ``initial`` float32 [size]. Every method may be
    called by many threads at once.
    """

    def __init__(
        self,
        initial: FloatVector,
        clock: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        self._vector = frozen_copy(initial)
        self._clock = clock
        #: Never runs backwards, as ``clock`` may.
        self._stopwatch = stopwatch
        #: By it, when something was published last; None if this process has not seen it.
        self._published_at: float | None = None
        self._info: PublishedInfo | None = None
        #: Whose it was.
        self._lineage = Lineage()
        #: The training that has last shown --start-afresh.
        self._afresh: str | None = None
        #: By version: the learner's count of its steps; the newest of them.
        self._iterations: dict[int, int] = {}
        self._version = 0
        self._publications = 0
        self._global_t = 0
        self._is_frozen = False
        self._last_step = float("inf")
        #: The policies beside this one.
        self.others = Policies(initial)
        self._lock = threading.Lock()

    @property
    def global_t(self) -> int:
        """Environment steps of all agents together."""
        return self._global_t

    @property
    def version(self) -> int:
        """Number of changes of the parameters."""
        return self._version

    @property
    def iteration(self) -> int:
        """The learner's count of its steps when it published last; -1 before."""
        info = self._info
        return -1 if info is None else info.iteration

    @property
    def publications(self) -> int:
        """How often anything was published since the start."""
        return self._publications

    def increment_global_t(self, steps: int) -> int:
        """Add ``steps`` and return the sum."""
        with self._lock:
            if not self._is_over():
                self._global_t += steps
            return self._global_t

    def end_at(self, last_step: float) -> None:
        """Count no further once the global step has reached ``last_step``."""
        self._last_step = last_step

    def freeze(self) -> None:
        """Change nothing from now on: what is published and counted is ignored."""
        with self._lock:
            self._is_frozen = True

    def publish(
        self, vector: FloatVector, iteration: int, message: str = "", lineage: Lineage | None = None
    ) -> PublishedInfo:
        """Replace the parameters by ``vector`` [size]; return what is known of them now.

        ValueError for another size, and for values that are not finite; NotContinued for those of a
        learner whose ``lineage`` does not continue what was published. The same values again change
        nothing but what is known of them.
        """
        shown = lineage or Lineage(holds=iteration)
        if len(shown.training.encode()) > _NAME_BYTES:
            raise ValueError(f"the name of a training has at most {_NAME_BYTES} bytes")
        require_replacement(vector, self._vector)
        replacement = frozen_copy(vector)
        info = PublishedInfo(self._clock(), iteration, message, hash_of(replacement))
        with self._lock:
            if self._is_frozen:
                return self._info or info
            self._require_continued(shown, iteration)
            self._lineage = shown
            if self._info is None or self._info.hash != info.hash:
                self._vector = replacement
                self._version += 1
            self._note(info)
            self._publications += 1
            self._published_at = self._stopwatch()
        return info

    def publish_other(self, name: str, vector: FloatVector, iteration: int) -> None:
        """Replace the parameters of another policy; see ``Policies.replace``."""
        with self._lock:
            if self._is_frozen:
                return
            self.others.replace(name, vector, iteration)
            self._publications += 1

    def pull(self, policy: str = DEFAULT) -> Values:
        """Return the values of a policy, their vector read-only, and the global step with them."""
        if policy != DEFAULT:
            vector, version = self.others.read(policy)
            return Values(Version(version), self._global_t, vector)
        with self._lock:
            at = self._published_at
            age_s = None if at is None else self._stopwatch() - at
            return Values(Version(self._version), self._global_t, self._vector, age_s, self._info)

    def iteration_of(self, version: int) -> int | None:
        """Return the learner's count of its steps when it published a version, if that is known.

        It is not, where the learner has gone back to an earlier step since.
        """
        with self._lock:
            return self._iterations.get(version)

    def snapshot(self) -> Snapshot:
        """Return what a checkpoint holds."""
        with self._lock:
            info = self._info or PublishedInfo(0.0, -1, "", "")
            return Snapshot(
                parameters=self._vector,
                slots={
                    _TIME: np.array([info.time]),
                    _ITERATION: np.array([info.iteration]),
                    _MESSAGE: _padded(info.message, MESSAGE_BYTES),
                    TRAINING: _padded(self._lineage.training, _NAME_BYTES),
                    RESUMES: np.array([self._lineage.resumes]),
                    **self.others.tensors(),
                },
                global_t=self._global_t,
                version=self._version,
            )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from ``snapshot``."""
        slots = snapshot.slots
        iteration = int(slots[_ITERATION][0])
        with self._lock:
            self._vector = frozen_copy(snapshot.parameters)
            self._global_t = snapshot.global_t
            self._version = snapshot.version
            self.others.restore(slots)
            if iteration >= 0:
                self._info = PublishedInfo(
                    float(slots[_TIME][0]),
                    iteration,
                    _unpadded(slots[_MESSAGE]),
                    hash_of(self._vector),
                )
                self._lineage = Lineage(_unpadded(slots[TRAINING]), resumes=int(slots[RESUMES][0]))
                self._iterations = {self._version: iteration}

    def _require_continued(self, shown: Lineage, iteration: int) -> None:
        """Raise NotContinued, or say if the learner is not where it was; under the lock."""
        self._say_of_afresh(shown, iteration)
        if self._info is None:
            if iteration > 0:
                _log.warning(
                    "the learner goes on from its step %d, and nothing of that is known here: the "
                    "global step is %d. Has this parameter server lost its checkpoints?",
                    iteration,
                    self._global_t,
                )
            return
        before, published = self._lineage, self._info.iteration
        require_continued(before, published, shown, iteration)
        if shown.training != before.training and published > 0:
            _log.warning(
                "step %d of training %s is replaced by step %d of training %s (--start-afresh)",
                published, before.training, iteration, shown.training,
            )  # fmt: skip
        elif iteration < published:
            _log.warning(
                "the learner goes on from step %d, its last checkpoint: %d steps that it had "
                "published after that are lost (--checkpoint-interval)",
                iteration, published - iteration,
            )  # fmt: skip

    def _say_of_afresh(self, shown: Lineage, iteration: int) -> None:
        """Say if --start-afresh has no effect: left in a configuration, it may have one later."""
        if not shown.is_afresh or shown.training == self._afresh:
            return
        self._afresh = shown.training
        own = replace(shown, is_afresh=False)
        try:
            require_continued(self._lineage, max(self.iteration, 0), own, iteration)
        except NotContinued:
            return
        _log.warning(
            "--start-afresh has no effect: there is nothing that training %s does not continue. "
            "Take it away, since it would replace whatever is published at a later start",
            shown.training,
        )

    def _note(self, info: PublishedInfo) -> None:
        """Take note of what was published, under the lock."""
        if self._info is not None and info.iteration < self._info.iteration:
            self._iterations.clear()
        self._info = info
        self._iterations[self._version] = info.iteration
        if len(self._iterations) > MOST_VERSIONS:
            del self._iterations[next(iter(self._iterations))]

    def _is_over(self) -> bool:
        return self._is_frozen or self._global_t >= self._last_step


def hash_of(vector: FloatVector) -> str:
    """Return a text of 22 characters that other values do not have."""
    digest = hashlib.blake2b(vector.data, digest_size=16).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _padded(text: str, length: int) -> npt.NDArray[np.uint8]:
    """Return the first bytes of a text in UTF-8: uint8 [length], zeros behind them."""
    return np.frombuffer(text.encode()[:length].ljust(length, b"\0"), np.uint8)


def _unpadded(padded: npt.NDArray[np.uint8]) -> str:
    return padded.tobytes().rstrip(b"\0").decode(errors="ignore")
