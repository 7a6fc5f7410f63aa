"""The versions of a parameter database: pushed by a training, and answered to those that ask."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from relaax.algorithm_base import PublishedInfo, Values, ValueSource, Version
from relaax.errors import CheckpointError, NoSuchVersion, NotContinued
from relaax.parameters.database import DatabaseWriter, ParameterDatabase, PolicyValues
from relaax.parameters.parameter_store import frozen_copy
from relaax.parameters.published import hash_of
from relaax.processes.identifiers import TIME_TAG_FORMAT, identifier_of, is_time_tag
from relaax.processes.periodic_tasks import Task, TasksThread
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: The newest version is pushed no more often than this, and takes this part of the time at most.
PUSH_INTERVAL_S, PUSH_SHARE = 1.0, 0.1

#: How often outdated versions are deleted.
GC_INTERVAL_S = 10.0

#: So many of those that were asked for last are kept in memory.
KEPT_VERSIONS = 4


@dataclass(frozen=True)
class TagRule:
    """Push with a tag after so many seconds, and after so many versions; None: not by these.

    ``initial``: the values that nothing was learnt for are pushed, too, with a tag, as version 0.
    """

    seconds: float | None = None
    steps: int | None = None
    initial: bool = False


class VersionPusher:
    """Pushes the newest values of ``source`` to ``database`` on a thread of its own.

    Between two pushes the newest version wins. A version has the number that is on a stored step:
    the learner's count of its updates, or that of the parameter server where gradients move the
    values. A push has a tag, which is the time, as ``rule`` says. There is none within
    ``interval_s`` of the one before. ``clock`` returns seconds of a stopwatch, ``now`` the time.
    """

    def __init__(
        self,
        source: ValueSource,
        database: DatabaseWriter,
        rule: TagRule,
        interval_s: float = PUSH_INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self._source = source
        self._database = database
        self._rule = rule
        self._clock = clock
        self._now = now
        self._complaint = RepeatedWarning(_log)
        self._known: Version | None = None
        self._tagged_at = clock()
        tags = database.list_tags()
        self._tagged = max((tags[tag] for tag in tags if is_time_tag(tag)), default=0)
        self._interval_s = interval_s
        self._task = Task(interval_s, self._push_or_warn)
        self._thread: TasksThread | None = None

    def begin(self) -> None:
        """Push from now on, until ``close``."""
        tasks = [self._task, Task(GC_INTERVAL_S, self._collect_or_warn)]
        self._thread = TasksThread(tasks, "version pusher")

    def close(self) -> None:
        """Push what is the last version now, and no other one after it."""
        if self._thread is not None:
            self._thread.close()
        self._push_or_warn()

    def push(self) -> None:
        """Push the newest values, unless they were pushed already.

        NotContinued if the database has a later version, CheckpointError if it cannot be reached.
        """
        values = self._source.pull(self._known)
        if values.vector is None:
            return
        number = values.version.number if values.info is None else values.info.iteration
        if number == 0 and not self._rule.initial:  # nothing is learnt yet
            return
        tags = self._tags(number)
        self._database.push(PolicyValues(values.vector, values.global_t), number, tags)
        self._known = values.version
        if tags:
            self._tagged_at, self._tagged = self._clock(), number

    def _tags(self, number: int) -> list[str]:
        seconds, steps = self._rule.seconds, self._rule.steps
        is_due = (seconds is not None and self._clock() - self._tagged_at >= seconds) or (
            steps is not None and number - self._tagged >= steps
        )
        is_due = is_due or number == 0
        tag = self._now().strftime(TIME_TAG_FORMAT)
        return [tag] if is_due and not self._database.has_tag(tag) else []

    def _push_or_warn(self) -> None:
        began = time.monotonic()
        try:
            self.push()
            self._complaint.forget()
        except (
            NotContinued
        ):  # the learner has gone back to a checkpoint, and will pass that version
            self._complaint.say(
                f"no version is pushed before version {self._database.version_of()} is passed, "
                f"which {self._database.location()} has"
            )
        except CheckpointError as error:  # the next time may succeed
            self._complaint.say(f"the newest values are not pushed: {error}")
        self._task.interval_s = max(self._interval_s, (time.monotonic() - began) / PUSH_SHARE)

    def _collect_or_warn(self) -> None:
        try:
            self._database.gc()
        except CheckpointError as error:
            _log.warning("outdated versions are not deleted: %s", error)


class StoredVersions:
    """Answers which versions ``database`` has, and their values. For many threads."""

    def __init__(self, database: ParameterDatabase) -> None:
        self._database = database
        #: Versions never change.
        self._values = lru_cache(KEPT_VERSIONS)(self._read)

    def pull(self, identifier: str, known: Version | None) -> Values:
        """Return the values of a version, without their vector where it is ``known``.

        NoSuchVersion if there is none; ConfigurationError for a query that is wrong.
        """
        values = self._values(self._database.version_of(identifier_of(identifier)))
        is_known = known is not None and known.number == values.version.number
        return replace(values, vector=None) if is_known else values

    def shown(self, path: str) -> object:
        """Return what the operators' port shows of ``versions``, of one of them, and of ``tags``.

        NoSuchVersion for a version that is not there, and for any other path.
        """
        match path.split("/"):
            case ["versions"]:
                return self._database.list_versions()
            case ["tags"]:
                return self._database.list_tags()
            case ["versions", text]:
                return self._shown_version(int(text) if text.isdecimal() else text)
        raise NoSuchVersion("versions, versions/VERSION and tags are here")

    def _shown_version(self, identifier: int | str) -> object:
        number = self._database.version_of(identifier)
        metadata = self._database.metadata_of(number)
        return {
            "version": number,
            "tags": [tag for tag, of in self._database.list_tags().items() if of == number],
            "metadata": None if metadata is None else metadata.model_dump(mode="json"),
        }

    def _read(self, number: int) -> Values:
        stored = self._database.get(number)
        vector = frozen_copy(stored.values.vector)
        info = PublishedInfo(stored.pushed_at, number, "", hash_of(vector))
        return Values(Version(number), stored.values.global_t, vector, info=info)
