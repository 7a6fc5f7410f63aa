"""A copy of a parameter server, for more workers than one can answer."""

import logging
import math
import threading
import time
from collections import OrderedDict
from dataclasses import replace
from functools import partial

from relaax.algorithm_base import (
    DEFAULT,
    Evaluations,
    Gradient,
    Metrics,
    ParameterLink,
    Phase,
    Publication,
    RunningParameterServer,
    Update,
    Values,
    Version,
    Wanted,
)
from relaax.errors import Abandoned, BridgeError
from relaax.parameters.training_watch import first_answer
from relaax.processes.stop_signal import Stop
from relaax.telemetry.metrics import EVALUATION_REWARD_OF
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: How often the primary is asked for what is new.
INTERVAL_S = 0.05

#: How long the end of the training is answered, before the replica exits: workers ask twice a
#: second.
LINGER_S = 2.0

#: How long a call of the replica waits for a primary that is away.
PRIMARY_WAIT_S = 1.0

#: Of so many versions it is known which ones of the primary they are.
_KNOWN_VERSIONS = 10_000


class ReplicaService(ParameterLink):
    """Answers requests for values, and hands all else to the primary.

    It has the primary's values a moment later. Its versions are its own: a primary that is started
    again may repeat numbers. While the primary is away, it serves what it has, and a call that
    needs the primary is a ParameterServerAway. BridgeError if the primary is away at the start.
    """

    def __init__(self, primary: ParameterLink) -> None:
        self._primary = primary
        self._lock = threading.Lock()
        self._number = 0
        #: The primary's versions by their own numbers; the oldest are forgotten.
        self._versions: OrderedDict[int, Version] = OrderedDict()
        self._publication = Publication(None, None, "")
        #: When the values were pulled last, by a clock that never runs backwards.
        self._pulled_at = time.monotonic()
        self._values = primary.pull()
        self._versions[0] = self._values.version
        self._fetch()

    def refresh(self) -> None:
        """Take what is new at the primary; BridgeError while it is away."""
        with self._lock:
            known = self._versions[self._number]
        self._take(self._primary.pull(known))
        self._fetch()

    def add(self, steps: int) -> int:
        """Count at the primary."""
        return self._primary.add(steps)

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Push to the primary; return its values."""
        if policy != DEFAULT:
            return self._primary.push(update, policy)
        if not isinstance(update, Gradient):
            self._primary.push(update)
            return replace(self.pull(), vector=None)
        known = update.computed_with
        self._take(self._primary.push(replace(update, computed_with=self._version_of(known))))
        return self.pull(known)

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the values, without their vector when ``known`` is current.

        Those of another policy than the default one come from the primary.
        """
        if policy != DEFAULT:
            return self._primary.pull(known, policy)
        with self._lock:
            version, vector = Version(self._number), self._values.vector
            is_known = known is not None and known.number == self._number
            age_s = self._age_s(self._values.age_s)
            return Values(version, self._values.global_t, None if is_known else vector, age_s)

    def fetch(self, wanted: Wanted, known_hash: str = "") -> Publication:
        """Return what was published last, as far as it is wanted."""
        found = self._publication
        is_known = wanted is Wanted.INFO or known_hash == found.hash
        info = None if wanted is Wanted.PARAMETER else found.info
        return Publication(
            vector=None if is_known else found.vector,
            info=None if info is None else replace(info, age_s=self._age_s(info.age_s)),
            hash=found.hash,
        )

    def metrics(self) -> Metrics:
        """Return where scalars go: to the primary, scores at its own versions."""
        return _OfThePrimary(self._primary.metrics(), self)

    def evaluations(self, after: int = 0) -> Evaluations:
        """Ask the primary."""
        return self._primary.evaluations(after)

    def primary_version(self, number: int) -> int | None:
        """Return the primary's number of a version; None if it has started again since."""
        with self._lock:
            version, newest = self._versions.get(number), self._versions[self._number]
        is_known = version is not None and version.incarnation == newest.incarnation
        return version.number if is_known and version is not None else None

    def phase(self) -> Phase:
        """Return whether the training goes on, as the primary says."""
        return self._primary.phase()

    def age_s(self) -> float:
        """Return how long ago the primary was heard of."""
        return time.monotonic() - self._pulled_at

    def _take(self, values: Values) -> None:
        with self._lock:
            self._pulled_at = time.monotonic()
            if values.vector is None:
                self._values = replace(values, vector=self._values.vector)
                return
            self._values = values
            self._number += 1
            self._versions[self._number] = values.version
            if len(self._versions) > _KNOWN_VERSIONS:
                self._versions.popitem(last=False)

    def _fetch(self) -> None:
        found = self._primary.fetch(Wanted.BOTH, self._publication.hash)
        vector = self._publication.vector if found.vector is None else found.vector
        self._publication = Publication(vector, found.info, found.hash)

    def _age_s(self, pulled: float | None) -> float | None:
        """Return the age of what had that age when it was pulled; None if it is not known."""
        return None if pulled is None else pulled + time.monotonic() - self._pulled_at

    def _version_of(self, computed_with: Version | None) -> Version | None:
        """Return the primary's version; one that it refuses, if it is not known any more."""
        if computed_with is None:
            return None
        return self._versions.get(computed_with.number, Version(0, incarnation=0))


class _OfThePrimary(Metrics):
    """Hands scalars to the primary; scores of versions that it does not know are left out."""

    def __init__(self, metrics: Metrics, service: ReplicaService) -> None:
        self._metrics = metrics
        self._service = service

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Hand a scalar on."""
        if name == EVALUATION_REWARD_OF and x is not None:
            x = self._service.primary_version(int(x))
            if x is None:
                return
        self._metrics.scalar(name, y, x)


def follow_when_there(
    primary: ParameterLink, stop: Stop, give_up_s: float = math.inf
) -> ReplicaService | None:
    """Return what answers for ``primary`` once that is there; None if ``stop`` is set before.

    Abandoned if the primary does not answer for ``give_up_s``.
    """
    return first_answer(
        partial(ReplicaService, primary),
        "the primary",
        stop,
        give_up_s=give_up_s,
        pause_s=INTERVAL_S,
    )


def keep_up(
    service: ReplicaService, port: RunningParameterServer, stop: Stop, give_up_s: float = math.inf
) -> None:
    """Keep ``service`` up to date until ``stop`` is set, or until the primary's training is over.

    Then say so to all that ask, for a while. Abandoned if the primary is away for ``give_up_s``.
    """
    complaint = RepeatedWarning(_log)
    while not stop.wait(INTERVAL_S):
        try:
            service.refresh()
            phase = service.phase()
        except BridgeError as error:
            complaint.say(f"serving the values before: {error}")
            if service.age_s() > give_up_s:
                raise Abandoned("the primary", give_up_s, str(error), has_answered=True) from error
            continue
        complaint.forget()
        port.set_phase(phase)
        if phase is Phase.CLOSING:
            until = time.monotonic() + LINGER_S
            while time.monotonic() < until and not stop.wait(INTERVAL_S):
                pass
            return
