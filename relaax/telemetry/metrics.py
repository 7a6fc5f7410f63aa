"""The metrics interface that parameter server, agent and environment share; waits reported by it.

A name is ``group/name``: TensorBoard shows a section for each group. The service's own groups are
``episode``, ``evaluation``, ``learner``, ``replay``, ``inference``, ``server`` and ``parameter
server``; metrics of clients are in ``client``.
"""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import NamedTuple

#: The sum of an episode's rewards; the goal of a training is measured by it.
EPISODE_REWARD = "episode/reward"

#: The same of an episode that was an evaluation, at the global step of the policy that played it.
EVALUATION_REWARD = "evaluation/reward"

#: The same at the version of that policy: checkpoints are compared by these.
EVALUATION_REWARD_OF = "evaluation/reward by version"

#: The same at the learner's count of its steps, where that is known of the policy, and no version.
EVALUATION_REWARD_AFTER = "evaluation/reward by iteration"

#: A number of an evaluated episode, before its name, at the version of the policy that played it,
#: and at the learner's count: the version of a parameter database. The return comes last. A stream
#: of an experiment may stand before the name, with a slash between. They are no curves.
#: Between both, "#NUMBER/" names the stage of a curriculum in which the episode began, if any.
EPISODE_OF, EPISODE_AFTER = "evaluation/episode by version ", "evaluation/episode by iteration "

#: Names of these numbers.
EPISODE_RETURN, EPISODE_LENGTH = "episode_return", "episode_length"

#: The name of the number of a stage, among the numbers of an episode that are reported.
STAGE = "#stage"

_STAGE_NUMBER = re.compile(r"#[0-9]{1,9}")

#: The number of environments that a worker serves, and of its connections, before the worker's own
#: name. The parameter server adds these numbers up.
ENVIRONMENTS_OF, CONNECTIONS_OF = "server/environments of ", "server/connections of "

#: For how many seconds a process has waited, and why: "the learner: too few steps" follows. The
#: parameter server keeps these: they are no curve.
WAIT_OF = "server/wait of "

#: Beginnings of the names of numbers that are no curves.
NO_CURVES = (EPISODE_OF, EPISODE_AFTER, ENVIRONMENTS_OF, CONNECTIONS_OF, WAIT_OF)

#: The prefix of names that clients choose.
OF_CLIENT = "client/"

#: The same for clients that evaluate.
OF_EVALUATING_CLIENT = "evaluation/client "


class EpisodeNumber(NamedTuple):
    """The meaning of the text behind ``EPISODE_OF``: "STREAM,STREAM/#STAGE/NAME", or a part of it.

    ``stage`` is the number of the stage of a curriculum in which the episode began; None without.
    """

    streams: str
    stage: int | None
    name: str


def episode_number(text: str) -> EpisodeNumber:
    """Return the parts of the text of a number of an evaluated episode."""
    *streams, name = text.split("/")
    stage = None
    if streams and _STAGE_NUMBER.fullmatch(streams[-1]):
        stage = int(streams.pop()[1:])
    return EpisodeNumber("/".join(streams), stage, name)


class Metrics(ABC):
    """Where scalars go. Storing one never blocks the caller and never raises on a full queue."""

    @abstractmethod
    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Store ``y`` under ``name`` at ``x``, which defaults to the global step."""

    def __call__(self) -> "Metrics":
        """Return these metrics: ``self.metrics().scalar(...)`` works in agents, where ``metrics``
        is a method, and in a parameter server, where it is an attribute.
        """
        return self


def store_evaluated(
    metrics: Metrics, numbers: Mapping[str, float], version: int, *, by_learner: bool
) -> None:
    """Store the numbers of an evaluated episode, whose return is the last; see ``EPISODE_OF``.

    ``by_learner``: the version is the learner's count of its steps.
    """
    score, kind = EVALUATION_REWARD_OF, EPISODE_OF
    if by_learner:
        score, kind = EVALUATION_REWARD_AFTER, EPISODE_AFTER
    metrics.scalar(score, numbers[EPISODE_RETURN], version)
    if STAGE in numbers:
        kind = f"{kind}#{numbers[STAGE]:.0f}/"
    for name in (*(numbers.keys() - {EPISODE_RETURN, STAGE}), EPISODE_RETURN):
        metrics.scalar(f"{kind}{name}", numbers[name], version)


class NullMetrics(Metrics):
    """Metrics that are not kept."""

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Drop the value."""


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
