"""A copy of a parameter server, for more workers than one can answer."""

import logging
import math
import threading
import time
from dataclasses import replace
from functools import partial

from relaax.algorithm_base import (
    DEFAULT,
    Evaluations,
    Gradient,
    Metrics,
    NewValues,
    ParameterLink,
    Phase,
    RunningParameterServer,
    Update,
    Values,
    Version,
)
from relaax.errors import Abandoned, BridgeError
from relaax.parameters.training_watch import first_answer
from relaax.processes.stop_signal import Stop
from relaax.telemetry.metrics import EPISODE_OF, EVALUATION_REWARD_OF
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: How often the primary is asked for newer values.
INTERVAL_S = 0.05

#: How long the end of the training is answered, before the replica exits: workers ask twice a
#: second.
LINGER_S = 2.0

#: How long a call of the replica waits for a primary that is away.
PRIMARY_WAIT_S = 1.0

#: A version that the primary refuses: it has none of this incarnation.
_REFUSED = Version(0, incarnation=0)


class ReplicaService(ParameterLink):
    """Answers requests for values, and hands all other calls to the primary.

    It has the primary's values a moment later, and asks it for those of other policies than the
    default one. Versions of the default policy are its own: a primary that is started again may
    repeat numbers. While the primary is away, it serves the values that it has, and a call that
    needs the primary is a ParameterServerAway. BridgeError if the primary is away at the start.
    """

    def __init__(self, primary: ParameterLink) -> None:
        self._primary = primary
        self._lock = threading.Lock()
        self._versions = _Numbers(are_own=True)
        #: Of the other policies: a learner at the primary is told the numbers that actors record.
        self._others: dict[str, _Numbers] = {}
        #: When the values were pulled last, by a clock that never runs backwards.
        self._pulled_at = time.monotonic()
        #: The primary's newest, with its version there, and the number that it has here.
        self._values = primary.pull()
        self._number = self._versions.number(self._values.version)

    def refresh(self) -> None:
        """Take newer values of the primary; BridgeError while it is away."""
        before = self._values.version
        self._take(self._primary.pull(before), before.incarnation)

    def add(self, steps: int) -> int:
        """Count at the primary."""
        return self._primary.add(steps)

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Push to the primary; return its values."""
        if policy != DEFAULT or isinstance(update, NewValues):
            return self._numbered(self._primary.push(update, policy), self._numbers_of(policy))
        if not isinstance(update, Gradient):
            self._primary.push(update)
            return replace(self.pull(), vector=None)
        known = update.computed_with
        at_primary = None if known is None else self._versions.at_primary(known.number) or _REFUSED
        began_in = self._values.version.incarnation
        self._take(self._primary.push(replace(update, computed_with=at_primary)), began_in)
        return self.pull(known)

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the values, without their vector when ``known`` is current.

        Those of another policy than the default one come from the primary.
        """
        if policy != DEFAULT:
            numbers = self._numbers_of(policy)
            at_primary = None if known is None else numbers.at_primary(known.number)
            return self._numbered(self._primary.pull(at_primary, policy), numbers)
        with self._lock:
            values, number = self._values, self._number
            since_s = time.monotonic() - self._pulled_at
        vector = None if known is not None and known.number == number else values.vector
        age_s = None if values.age_s is None else values.age_s + since_s
        return replace(values, version=Version(number), vector=vector, age_s=age_s)

    def metrics(self) -> Metrics:
        """Return where scalars go: to the primary, scores at its own versions."""
        return _OfThePrimary(self._primary.metrics(), self)

    def evaluations(self, after: int = 0) -> Evaluations:
        """Ask the primary."""
        return self._primary.evaluations(after)

    def primary_version(self, number: int) -> int | None:
        """Return the primary's number of a version; None if it has started again since."""
        version = self._versions.at_primary(number)
        return None if version is None else version.number

    def phase(self) -> Phase:
        """Return whether the training goes on, as the primary says."""
        return self._primary.phase()

    def age_s(self) -> float:
        """Return how long ago the primary has answered."""
        return time.monotonic() - self._pulled_at

    def _take(self, values: Values, began_in: int) -> None:
        """Serve the primary's values from now on; older ones, of a call that took longer, are not.

        Answers of the primary may come in any order. One of another incarnation is newer, unless
        there are values of another one than ``began_in`` since the call began.
        """
        with self._lock:
            self._pulled_at = time.monotonic()
            now, before = values.version, self._values.version
            is_same = now.incarnation == before.incarnation
            if now.number < before.number if is_same else before.incarnation != began_in:
                return
            vector = self._values.vector if values.vector is None else values.vector
            self._values = replace(values, vector=vector)
            self._number = self._versions.number(now)

    def _numbers_of(self, policy: str) -> "_Numbers":
        """Return the numbers of a policy."""
        if policy == DEFAULT:
            return self._versions
        return self._others.setdefault(policy, _Numbers(are_own=False))

    @staticmethod
    def _numbered(values: Values, numbers: "_Numbers") -> Values:
        """Return the primary's values with the version that they have here."""
        return replace(values, version=Version(numbers.number(values.version)))


class _Numbers:
    """A replica's numbers of the primary's versions of a policy. For several threads.

    Own ones are the primary's, counted from a first one that is larger at each start of the primary
    than all before. Others are the primary's: after its start, those that may have been there
    before stand for no version.
    """

    def __init__(self, are_own: bool) -> None:
        self._are_own = are_own
        self._lock = threading.Lock()
        self._incarnation: int | None = None
        #: The first number of this incarnation alone, the next one, and the number here of 0 there.
        self._first = self._next = self._zero = 0

    def number(self, version: Version) -> int:
        """Return the replica's number of a version that the primary has answered with."""
        with self._lock:
            if version.incarnation != self._incarnation:
                self._incarnation, self._first = version.incarnation, self._next
                self._zero = self._first if self._are_own else 0
            number = self._zero + version.number
            self._next = max(self._next, number + 1)
            return number

    def at_primary(self, number: int) -> Version | None:
        """Return the primary's version; None where it may be of before the primary's last start."""
        with self._lock:
            if self._incarnation is None or number < self._first:
                return None
            return Version(number - self._zero, self._incarnation)


class _OfThePrimary(Metrics):
    """Hands scalars to the primary; scores of versions that it does not know are left out."""

    def __init__(self, metrics: Metrics, service: ReplicaService) -> None:
        self._metrics = metrics
        self._service = service

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Hand a scalar on."""
        if (name == EVALUATION_REWARD_OF or name.startswith(EPISODE_OF)) and x is not None:
            x = self._service.primary_version(int(x))
            if x is None:
                return
        self._metrics.scalar(name, y, x)


def follow_when_there(
    primary: ParameterLink, stop: Stop, give_up_s: float = math.inf
) -> ReplicaService | None:
    """Return the service of a replica once ``primary`` answers; None if ``stop`` is set before.

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

    Then answer callers with its end for a while. Abandoned if the primary is away for
    ``give_up_s``.
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
