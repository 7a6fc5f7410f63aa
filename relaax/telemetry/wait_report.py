"""Reports to the parameter server why a process of a training waits."""

import time
from collections.abc import Callable

from relaax.telemetry.metrics import WAIT_OF, Metrics

#: A report is sent so often, also one of a process that does not wait: its silence means that it
#: has ended.
REPORT_INTERVAL_S = 5.0

#: The name of a learning process in reports.
LEARNER = "the learner"


class WaitReport:
    """Reports how long ``part`` has waited, and for what reason.

    Several threads may call it: the last reason counts.

    A reason with changing figures, for example "1,200 of 2,048 steps", is progress: the time begins
    anew. ``part`` is the subject of a sentence, for example "the learner".
    """

    def __init__(
        self, metrics: Metrics, part: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._metrics = metrics
        self._part = part
        self._clock = clock
        self._reason = ""
        self._since = clock()
        self._due = self._since + REPORT_INTERVAL_S

    def note(self, reason: str) -> None:
        """Note why the process can do nothing now; "" where it works. It may be called often."""
        now = self._clock()
        if reason != self._reason:
            self._reason, self._since = reason, now
        if now < self._due:
            return
        self._due = now + REPORT_INTERVAL_S
        waited_s = now - self._since if reason else 0.0
        self._metrics.scalar(f"{WAIT_OF}{self._part}: {reason}", waited_s)
