"""Evaluates one version of a parameter database after another; seed 002, "Evaluation"."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from relaax.configuration.eval_rules import EvalRule
from relaax.errors import CheckpointError, ConfigurationError, NoSuchVersion
from relaax.parameters.database import DatabaseWriter
from relaax.parameters.process.stages import Stages
from relaax.parameters.stage import Stage
from relaax.processes.identifiers import LATEST, require_tag
from relaax.processes.periodic_tasks import Task, TasksThread
from relaax.telemetry.episode_numbers import MOST_NUMBERS
from relaax.telemetry.metrics import EPISODE_RETURN, Metrics, episode_number
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: Episodes are counted, and metadata are written, so often.
INTERVAL_S = 1.0

#: Episodes of so many versions and streams wait to be counted, with so many names of numbers. More
#: are dropped: that of the version that came first.
MOST_WAITING, MOST_NAMES = 256, MOST_NUMBERS + 2


class Evaluated(NamedTuple):
    """Episodes of one version and one stage, reported to the same streams; "" for none."""

    streams: Collection[str]
    version: int
    #: The number of the stage of a curriculum in which they began; None without one.
    stage: int | None
    episodes: int
    #: Of the episodes that have such a number, and how many these are.
    means: Mapping[str, float]
    counts: Mapping[str, int]


class EvaluatedEpisodes:
    """Puts the numbers of episodes together. For many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: By streams, version and stage, and by name. The return of an episode comes last.
        self._numbers: dict[tuple[str, int, int | None], dict[str, deque[float]]] = {}

    def note(self, text: str, version: int, y: float) -> None:
        """Take a number of an episode; see ``EpisodeNumber`` for its text."""
        streams, stage, name = episode_number(text)
        with self._lock:
            numbers = self._numbers.setdefault((streams, version, stage), {})
            if name in numbers or len(numbers) < MOST_NAMES or name == EPISODE_RETURN:
                numbers.setdefault(name, deque()).append(y)
            if len(self._numbers) > MOST_WAITING:
                del self._numbers[next(iter(self._numbers))]

    def take(self) -> list[Evaluated]:
        """Return the episodes that were reported as a whole since the last call."""
        with self._lock:
            found = []
            for (streams, version, stage), numbers in list(self._numbers.items()):
                count = len(numbers.get(EPISODE_RETURN, ()))
                if count:
                    all_taken = {name: _taken(each, count) for name, each in numbers.items()}
                    taken = {name: values for name, values in all_taken.items() if values}
                    means = {name: sum(values) / len(values) for name, values in taken.items()}
                    counts = {name: len(values) for name, values in taken.items()}
                    names = streams.split(",")
                    found.append(Evaluated(names, version, stage, count, means, counts))
                    if not any(numbers.values()):
                        del self._numbers[streams, version, stage]
            return found


def _taken(values: deque[float], count: int) -> list[float]:
    return [values.popleft() for _ in range(min(count, len(values)))]


class EvalManager:
    """Keeps a tag on a version until enough episodes of it were played, and moves it then.

    Episodes of other versions, and of other streams, do not count. The tag is in the database: a
    manager that is made again goes on with its version, whose episodes count anew. ``own_tags`` are
    those of all managers. With a curriculum, episodes that began in another stage than the present
    one do not count either.
    """

    def __init__(
        self,
        tag: str,
        rule: EvalRule,
        database: DatabaseWriter,
        metrics: Metrics,
        own_tags: Collection[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        require_tag(tag)
        self._tag = tag
        self._rule = rule
        self._database = database
        self._metrics = metrics
        self._own_tags = {*own_tags, tag}
        self._clock = clock
        curriculum = rule.curriculum_config
        self._stages = None if curriculum is None else Stages(curriculum, database)
        self._version: int | None = None
        self._is_evaluated = False
        if database.has_tag(tag):
            self._begin(database.version_of(tag))

    @property
    def stage(self) -> Stage | None:
        """The present stage of its curriculum; None without one."""
        return None if self._stages is None else self._stages.now

    def advance(self, evaluated: Sequence[Evaluated]) -> None:
        """Count episodes, and move on if there are enough; CheckpointError as of the database."""
        for each in evaluated:
            is_of_stage = self.stage is None or each.stage == self.stage.number
            is_of_version = each.version == self._version and is_of_stage
            if self._rule.eval_sample_stream in each.streams and is_of_version:
                self._count(each)
        if self._is_enough():
            self._report()
        if self._stages is not None:
            self._stages.advance()
        if self._version is None or self._is_evaluated:
            self._move()

    def _begin(self, version: int) -> None:
        self._version, self._is_evaluated = version, False
        self._episodes, self._began_at = 0, self._clock()
        #: The sum of each number, and of how many episodes it is.
        self._sums: dict[str, tuple[float, int]] = {}

    def _count(self, evaluated: Evaluated) -> None:
        self._episodes += evaluated.episodes
        for name, mean in evaluated.means.items():
            total, count = self._sums.get(name, (0.0, 0))
            new = evaluated.counts[name]
            self._sums[name] = (total + mean * new, count + new)

    def _is_enough(self) -> bool:
        if self._version is None or self._is_evaluated:
            return False
        seconds = self._rule.eval_time_per_version_seconds or 0.0
        has_time = self._clock() - self._began_at >= seconds
        return has_time and self._episodes >= self._rule.eval_games_per_version

    def _report(self) -> None:
        """Store the means of the version, and say them."""
        means = {name: total / count for name, (total, count) in sorted(self._sums.items())}
        for name, mean in means.items():
            self._metrics.scalar(f"{self._tag}/{name}", mean, self._version)
        if self._stages is not None:
            self._metrics.scalar(f"{self._tag}/stage", self._stages.now.number, self._version)
        said = ", ".join(f"{name} {mean:.4g}" for name, mean in means.items())
        print(
            f"{self._tag}: version {self._version}, {self._episodes} episodes: {said}", flush=True
        )
        self._is_evaluated = True
        if self._stages is not None and self._version is not None:
            self._stages.submit(self._version, means)

    def _move(self) -> None:
        """Move the tag to a newer version, if there is one."""
        try:
            version = self._newest()
            if version != self._version:
                self._begin(self._database.tag(version, self._tag))
        except NoSuchVersion:
            pass  # there is none yet, or it has just gone: the next time will find another one

    def _newest(self) -> int:
        """Return the version of the target; of ``latest``, a newer version with a tag if any."""
        target = self._rule.eval_target_tag
        tagged: list[int] = []
        if target == LATEST:
            others = self._own_tags | {LATEST}
            tags = self._database.list_tags().items()
            newer = -1 if self._version is None else self._version
            tagged = [version for tag, version in tags if tag not in others and version > newer]
        return max(tagged) if tagged else self._database.version_of(target)


class VersionEvaluation:
    """Takes the evaluated episodes of a policy's versions, for its managers and its metadata.

    Any episode of one version counts in its metadata, where it has some. ``rules`` are those of
    managers by their tags. ``note`` is for many threads; all else is done by a thread of its own.
    """

    def __init__(
        self,
        database: DatabaseWriter,
        rules: Mapping[str, EvalRule],
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._episodes = EvaluatedEpisodes()
        self.note = self._episodes.note
        self._managers = [
            EvalManager(tag, rule, database, metrics, rules, clock) for tag, rule in rules.items()
        ]
        staged = [each for each in self._managers if each.stage is not None]
        if len(staged) > 1:
            raise ConfigurationError("--eval-managers: two have a curriculum_config: give one")
        self._staged = staged[0] if staged else None
        self._complaint = RepeatedWarning(_log)
        self._thread: TasksThread | None = None

    def stage(self) -> Stage | None:
        """Return the present stage of the policy's curriculum; None without one."""
        return None if self._staged is None else self._staged.stage

    def begin(self) -> None:
        """Count from now on, until ``close``."""
        self._thread = TasksThread([Task(INTERVAL_S, self.advance)], "evaluation")

    def close(self) -> None:
        """Count what is left, and nothing after it."""
        if self._thread is not None:
            self._thread.close()
        self.advance()

    def advance(self) -> None:
        """Count the episodes since the last call; warn if the database cannot be changed."""
        evaluated = self._episodes.take()
        steps = [partial(self._update_metadata, each) for each in evaluated]
        for step in [*steps, *(partial(each.advance, evaluated) for each in self._managers)]:
            try:
                step()
            except CheckpointError as error:  # these episodes are lost, and later ones may be kept
                self._complaint.say(f"evaluations are not in the parameter database: {error}")

    def _update_metadata(self, evaluated: Evaluated) -> None:
        if self._database.kind is None:
            return
        try:
            if any(count != evaluated.episodes for count in evaluated.counts.values()):
                names = ", ".join(sorted(evaluated.means))
                raise ConfigurationError(
                    f"only some episodes of version {evaluated.version} have all of {names}"
                )
            self._database.update_metadata(evaluated.version, evaluated.means, evaluated.episodes)
        except NoSuchVersion:
            pass  # pushed without a tag, and so without metadata
        except ConfigurationError as error:  # other names than before: the environment's fault
            self._complaint.say(f"the metadata of a version stay as they are: {error}")
