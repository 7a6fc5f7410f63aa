"""One watch over a whole training: whether it makes progress, and which part waits for which."""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from relaax.parameters.process.progress import counted
from relaax.telemetry.metrics import LEARNER
from relaax.telemetry.operators.families import Metric, gauges

#: Nothing is said before so many seconds without progress.
PATIENCE_S = 30.0

#: Nor before so many times the usual interval between two steps, or updates: a plant may take a
#: step in a minute. That is the third longest of the latest ones, so that a standstill or two count
#: for nothing; the shortest where there are fewer than three.
USUAL_TIMES, INTERVALS, RANK = 3.0, 50, 3

#: A report is forgotten after so many seconds: its process has ended, or gone on elsewhere.
FORGET_AFTER_S = 20.0

#: Where workers learn, an update is missed once so many rollouts could have been full.
ROLLOUTS = 10

#: The log says it no more often.
SAY_EVERY_S = 60.0

_log = logging.getLogger(__name__)


@dataclass
class _Report:
    reason: str
    waited_s: float
    came_at: float


class _Count:
    """A number that should grow."""

    def __init__(self, now: float) -> None:
        self._value: int | None = None
        self.changed_at = now
        self._has_grown = False
        #: Seconds between two of the latest changes.
        self._intervals: deque[float] = deque(maxlen=INTERVALS)

    def note(self, value: int | None, now: float) -> bool:
        """Take note of the number; return whether it is another one."""
        if value == self._value:
            return False
        if self._has_grown:
            self._intervals.append(now - self.changed_at)
        self._has_grown = self._value is not None
        self._value, self.changed_at = value, now
        return True

    def late_s(self, now: float) -> float:
        """Return for how long the number has not grown; 0 while that may be usual."""
        silent_s = now - self.changed_at
        longest = sorted(self._intervals, reverse=True)[:RANK]
        usual_s = longest[-1] if longest else 0.0
        return silent_s if silent_s >= max(PATIENCE_S, USUAL_TIMES * usual_s) else 0.0


class Standstill:
    """Says that a training makes no progress, and why.

    ``has_learner``: a process of its own learns. ``rollout_steps``: where workers learn, the steps
    of an environment that make an update. Unless anything ``learns``, no update is missed. Many
    threads may call it at once, but ``look`` is for one.
    """

    def __init__(
        self,
        has_learner: bool,
        rollout_steps: int = 1,
        learns: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._has_learner = has_learner
        self._rollout_steps = rollout_steps
        self._learns = learns
        self._clock = clock
        self._lock = threading.Lock()
        self._reports: dict[str, _Report] = {}
        self._steps, self._updates = _Count(clock()), _Count(clock())
        self._steps_at_update = 0
        #: Whether any environment was connected to an RLX server: those of actors are not counted.
        self._had_environments = False
        #: Seconds without steps and without updates, 0 while all is well.
        self._late = {"steps": 0.0, "updates": 0.0}
        #: The same in words; "" while all is well.
        self.said = ""
        self._say_at = -math.inf

    def note_wait(self, part: str, reason: str, waited_s: float) -> None:
        """Keep the report of a process (``WaitReport``); ``reason`` is "" where it works."""
        with self._lock:
            self._reports[part] = _Report(reason, waited_s, self._clock())

    def look(self, steps: int, updates: int | None, environments: int) -> str:
        """Return in words that the training stands still, and why; "" while it goes on.

        The training has taken ``steps`` and ``updates``, which are None if they are not counted,
        and so many environments are connected to RLX servers. The log has the words, too, once a
        minute.
        """
        now = self._clock()
        self._had_environments |= environments > 0
        self._steps.note(steps, now)
        if self._updates.note(updates, now):
            self._steps_at_update = steps
        reports = self._heard_lately(now)
        steps_s, updates_s = self._steps.late_s(now), self._updates.late_s(now)
        why_no_update = ""
        if updates_s and updates is not None and self._learns:
            why_no_update = self._why_no_update(steps, environments, reports)
        self._late = {"steps": steps_s, "updates": updates_s if why_no_update else 0.0}
        if steps_s:
            self.said = f"no step for {steps_s:.0f} s: {self._why_no_step(environments, reports)}"
        elif why_no_update:
            self.said = f"no update for {updates_s:.0f} s: {why_no_update}"
        else:
            self.said = ""
        self._say(now)
        return self.said

    def figures(self) -> Iterable[Metric]:
        """Return for how long nothing was counted, 0 while all is well."""
        means = "Seconds without progress of a training that stands still"
        return [gauges("standstill_seconds", means, "without", self._late)]

    def _say(self, now: float) -> None:
        if self.said and now >= self._say_at:
            self._say_at = now + SAY_EVERY_S
            _log.warning("%s", self.said)

    def _heard_lately(self, now: float) -> dict[str, _Report]:
        with self._lock:
            self._reports = {
                part: report
                for part, report in self._reports.items()
                if now - report.came_at < FORGET_AFTER_S
            }
            return dict(self._reports)

    def _why_no_update(self, steps: int, environments: int, reports: dict[str, _Report]) -> str:
        """Return why there is no update; "" where no update is due."""
        if not self._has_learner:
            due = ROLLOUTS * self._rollout_steps * max(environments, 1)
            taken = steps - self._steps_at_update
            return f"{taken:,} steps came, and no worker sends a gradient" if taken > due else ""
        if LEARNER not in reports:
            return "no learner is heard of: does relaax-learner run, and reach this server?"
        return _waiting({LEARNER: reports[LEARNER]})

    def _why_no_step(self, environments: int, reports: dict[str, _Report]) -> str:
        waiting = _waiting(reports)
        if waiting:
            return waiting
        if not environments and not self._had_environments:
            return "no environment has connected to an RLX server yet, and no actor has sent a step"
        if not environments:
            return "no environment is connected to an RLX server any more"
        connected = counted(environments, "environment")
        be = "is" if environments == 1 else "are"
        return f"{connected} {be} connected, and no reward comes: the simulator is busy, or hangs"


def _waiting(reports: dict[str, _Report]) -> str:
    """Return which parts wait for long, and why, the learner first; "" where all go on."""
    long = {
        part: report
        for part, report in sorted(reports.items(), key=lambda item: item[0] != LEARNER)
        if report.reason and report.waited_s >= PATIENCE_S / 2
    }
    return "; ".join(f"{part} waits: {report.reason}" for part, report in [*long.items()][:2])
