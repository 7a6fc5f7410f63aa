"""Reports delivered steps to the parameter server, and asks it whether the training is over."""

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from relaax.algorithm_base import ParameterLink, Phase
from relaax.errors import (
    Abandoned,
    BridgeError,
    ConfigurationError,
    NotThereYet,
    ParameterServerAway,
    RelaaxError,
)
from relaax.processes.stop_signal import Stop
from relaax.telemetry.throttled_log import RepeatedWarning

Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)

#: How often steps are reported, and the parameter server is asked.
INTERVAL_S = 0.2

#: How often a version is asked for that is not there yet.
VERSION_INTERVAL_S = 1.0

#: How long ``close`` waits for the thread, which may itself wait for the parameter server.
_CLOSE_S = 0.5


def first_answer(
    ask: Callable[[], Answer],
    whom: str,
    stop: Stop,
    *,
    give_up_s: float,
    pause_s: float,
    waits_for: type[RelaaxError] = BridgeError,
) -> Answer | None:
    """Return the first result of ``ask``; None if ``stop`` is set before.

    It is called again, after ``pause_s``, where it raises ``waits_for``. Abandoned, which names
    ``whom``, after ``give_up_s``.
    """
    complaint, give_up_at = RepeatedWarning(_log), time.monotonic() + give_up_s
    while not stop.wait(0):
        try:
            return ask()
        except waits_for as error:
            complaint.say(f"waiting for {whom}: {error}")
            if time.monotonic() > give_up_at:
                raise Abandoned(whom, give_up_s, str(error), has_answered=False) from error
        stop.wait(pause_s)
    return None


def wait_for_version(
    link: ParameterLink, is_over: Callable[[], bool], stop: Stop | None = None
) -> bool:
    """Return whether the version that ``link`` follows is there, before ``is_over`` or ``stop``.

    Its tag may be set long after the start of a training. ConfigurationError for a refusal.
    """
    complaint, stop = RepeatedWarning(_log), stop or threading.Event()
    while not is_over() and not stop.wait(0):
        try:
            link.pull()
            return True
        except (NotThereYet, ParameterServerAway) as error:
            complaint.say(f"waiting for a version (--policy-identifier): {error}")
        except BridgeError as error:
            raise ConfigurationError(f"--policy-identifier: {error}") from error
        stop.wait(VERSION_INTERVAL_S)
    return False


class TrainingWatch:
    """Reports steps to the parameter server, and asks it whether the training is over.

    ``steps`` returns the number of steps that have been delivered so far. A thread does all of it
    until ``close``: no other part waits while the parameter server is away, and steps that are
    delivered then are counted when it is back. The thread calls:

    - ``on_begin`` once, with the global step before any of these steps;
    - ``on_counted`` with the number of steps that the parameter server has counted;
    - ``on_score`` with the learner's step and the score of each evaluation of a published policy
      from now on, not of a learner before;
    - ``on_place`` with the place, among all environments, of the one that is played here.

    The training is abandoned where the parameter server does not answer for ``give_up_s``, counted
    from its last answer, or from the start.
    """

    def __init__(
        self,
        bridge: ParameterLink,
        steps: Callable[[], int],
        on_score: Callable[[int, float], object] | None = None,
        on_begin: Callable[[int], object] | None = None,
        give_up_s: float = math.inf,
        on_counted: Callable[[int], object] = lambda steps: None,
        on_place: Callable[[int], object] | None = None,
    ) -> None:
        self._give_up_s = give_up_s
        self._on_counted = on_counted
        self._on_place = on_place
        self._bridge = bridge
        self._steps = steps
        self._on_score = on_score
        self._on_begin = on_begin
        self._reported = 0
        #: The number of scores so far; None until it is known.
        self._scored: int | None = None
        self._phase = Phase.TRAINING
        self._heard_at = time.monotonic()
        self._has_heard = False
        #: Why the parameter server could not be used last.
        self._reason = ""
        self._closes = threading.Event()
        self._thread = threading.Thread(target=self._run, name="training watch", daemon=True)
        self._thread.start()

    @property
    def phase(self) -> Phase:
        """The phase of the training by the parameter server's latest answer."""
        return self._phase

    @property
    def is_over(self) -> bool:
        """Whether the training is over."""
        return self._phase is not Phase.TRAINING

    @property
    def is_abandoned(self) -> bool:
        """Whether the parameter server is away for too long."""
        return self.silence_s() > self._give_up_s

    def require_known(self) -> None:
        """Raise Abandoned if the parameter server is away for too long."""
        if self.is_abandoned:
            raise Abandoned(
                "the parameter server", self._give_up_s, self._reason, has_answered=self._has_heard
            )

    def silence_s(self) -> float:
        """Return for how long the parameter server has not answered, since the start at most."""
        return time.monotonic() - self._heard_at

    def close(self) -> None:
        """End the thread."""
        self._closes.set()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        complaint = RepeatedWarning(_log)
        while not self._closes.wait(INTERVAL_S):
            try:
                self._begin()
                self._report()
                self._take_scores()
                self._phase = self._bridge.phase()
                self._take_place()
                self._heard_at, self._has_heard = time.monotonic(), True
                complaint.forget()
            except BridgeError as error:  # all is tried again
                self._reason = str(error)
                if not self._closes.is_set():
                    complaint.say(self._reason)

    def _begin(self) -> None:
        if self._on_begin is not None:
            self._on_begin(self._bridge.add(0))
            self._on_begin = None

    def _take_place(self) -> None:
        if self._on_place is not None:
            (place,) = self._bridge.places([0])
            self._on_place(place)

    def _take_scores(self) -> None:
        if self._on_score is None:
            return
        found = self._bridge.evaluations(self._scored or 0)
        new = [] if self._scored is None else found.scores
        self._scored = found.count
        for step, score in new:
            self._on_score(step, score)

    def _report(self) -> None:
        steps = self._steps()
        if steps > self._reported:
            self._bridge.add(steps - self._reported)
            self._on_counted(steps - self._reported)
            self._reported = steps
