"""Metadata of versions: running means of the environment's episode information."""

import logging
import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from relaax.errors import ConfigurationError, NoSuchVersion
from relaax.parameters.database.query import DRAW, Query, Stage, divided, stages_of
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: Metadata expire so long after their last update (seed 002, "Metadata Parameter Database").
EXPIRE_DAYS = 3.0

_DAY_S = 86400.0

#: Names in queries have dots between them, and operators begin with a dollar sign.
_NAME = re.compile(r"[^.$][^.]*")


class VersionMetadata(BaseModel):
    """The metadata of a version, as queries know them."""

    model_config = ConfigDict(frozen=True)

    version: int
    #: Seconds since 1970.
    time_created: float
    last_updated: float
    #: The episodes behind the means.
    count: int = 0
    #: Means by name, and numbers that were set.
    md: Mapping[str, float] = {}
    #: The names of those that were set: they are no means.
    was_set: frozenset[str] = frozenset()

    def updated(self, means: Mapping[str, float], episodes: int, now: float) -> "VersionMetadata":
        """Return running means with those of more episodes.

        ConfigurationError for other names than before, and for values that are not finite.
        """
        _require_numbers(means)
        if episodes < 1:
            raise ConfigurationError(f"means must be of 1 episode or more, are of {episodes}")
        known = set(self.md) - self.was_set
        if self.was_set & set(means) or (known and known != set(means)):
            raise ConfigurationError(
                f"the metadata of version {self.version} are {', '.join(sorted(self.md))}, and new "
                f"ones are {', '.join(sorted(means))}: they must stay the same"
            )
        total = self.count + episodes
        md = dict(self.md) | {
            name: (self.md.get(name, 0.0) * self.count + float(value) * episodes) / total
            for name, value in means.items()
        }
        return self.model_copy(update={"last_updated": now, "count": total, "md": md})

    def having(self, numbers: Mapping[str, float], now: float) -> "VersionMetadata":
        """Return metadata with these numbers in the place of those that were set before.

        ConfigurationError for the name of a mean, and for values that are not finite.
        """
        _require_numbers(numbers)
        if means := set(numbers) & (set(self.md) - self.was_set):
            raise ConfigurationError(
                f"{', '.join(sorted(means))} of version {self.version}: a mean of episodes cannot "
                "be set"
            )
        md = dict(self.md) | {name: float(value) for name, value in numbers.items()}
        was_set = self.was_set | set(numbers)
        return self.model_copy(update={"last_updated": now, "md": md, "was_set": was_set})


def _require_numbers(numbers: Mapping[str, float]) -> None:
    if wrong := [name for name in numbers if not _NAME.fullmatch(name)]:
        raise ConfigurationError(f"a name of metadata has no dot and no $ first, is {wrong[0]!r}")
    if wrong := [name for name, value in numbers.items() if not math.isfinite(value)]:
        raise ConfigurationError(f"metadata {wrong[0]!r} is {numbers[wrong[0]]}: not finite")


class MetadataStore(ABC):
    """Where the metadata of one database are. CheckpointError if it cannot be reached."""

    #: What it is, for messages.
    kind: ClassVar[str]

    @abstractmethod
    def read(self, version: int) -> VersionMetadata | None:
        """Return the metadata of a version; None where it has none."""

    @abstractmethod
    def write(self, metadata: VersionMetadata) -> None:
        """Set the metadata of a version."""

    @abstractmethod
    def delete(self, versions: Collection[int]) -> None:
        """Delete the metadata of versions; missing ones are no error."""

    @abstractmethod
    def find(self, stages: Collection[Stage]) -> list[VersionMetadata]:
        """Return the metadata that the checked stages of a query lead to."""

    @abstractmethod
    def fields(self) -> set[str]:
        """Return the names of all numbers."""

    def close(self) -> None:
        """Close connections."""


class Metadata:
    """The metadata of the versions that were pushed with a tag.

    They expire ``expire_days`` after the last update, by ``clock``: seconds since 1970. ``random``
    chooses among the versions that a query leads to.
    """

    def __init__(
        self,
        store: MetadataStore,
        expire_days: float = EXPIRE_DAYS,
        clock: Callable[[], float] = time.time,
        random: np.random.Generator | None = None,
    ) -> None:
        self._store = store
        self._expire_days = expire_days
        self._clock = clock
        self._random = random or np.random.default_rng()
        #: Why a draw is uniform.
        self._complaint = RepeatedWarning(_log)
        self.kind = store.kind
        self.close = store.close

    def of(self, version: int) -> VersionMetadata | None:
        """Return the metadata of a version; None where it has none, or they have expired."""
        found = self._store.read(version)
        return found if found is not None and found.last_updated > self._oldest() else None

    def first(self, version: int, means: Mapping[str, float] | None) -> VersionMetadata:
        """Return the metadata of a version that is pushed with a tag; ``set`` begins them."""
        now = self._clock()
        new = VersionMetadata(version=version, time_created=now, last_updated=now)
        return new.updated(means, 1, now) if means else new

    def set(self, metadata: VersionMetadata) -> None:
        """Set the metadata of a version."""
        self._store.write(metadata)

    def update(self, version: int, means: Mapping[str, float], episodes: int) -> None:
        """Take the means of more episodes; NoSuchVersion where the version has no metadata."""
        known = self.of(version)
        if known is None:
            raise NoSuchVersion(
                f"version {version} has no metadata: it was pushed without a tag, or they have "
                f"expired {self._expire_days:g} days after their last update"
            )
        self._store.write(known.updated(means, episodes, self._clock()))

    def set_numbers(self, version: int, numbers: Mapping[str, float]) -> None:
        """Set numbers of a version; metadata begin with them where the version has none."""
        known = self.of(version) or self.first(version, None)
        self._store.write(known.having(numbers, self._clock()))

    def keep(self, versions: Collection[int]) -> None:
        """Delete the metadata of other versions than these, and expired ones."""
        alive, known = self._store.find([self._is_alive()]), self._store.find([])
        kept = {each.version for each in alive} & set(versions)
        self._store.delete({each.version for each in known} - kept)

    def choose(self, query: Query, versions: Collection[int]) -> int | None:
        """Return one of the versions that a query leads to; None where it leads to none.

        It is drawn uniformly, or as ``$draw`` says. ConfigurationError for a query that is wrong.
        Others than ``versions`` are passed over.
        """
        weighed, name = divided(query)
        try:
            stages: list[Stage] = stages_of(weighed, self._store.fields())
            named = self._store.find([self._is_alive(), *stages])
        except RecursionError:
            raise ConfigurationError("the conditions of a query are nested too deeply") from None
        found = [each for each in named if each.version in versions]
        if not found:
            return None
        if name is not None and not any(name in each.md for each in found):
            self._complaint.say(f"no version has md.{name} ({DRAW}): one is drawn uniformly")
        probabilities = None if name is None else _shares(found, name)
        return found[self._random.choice(len(found), p=probabilities)].version

    def _is_alive(self) -> dict[str, Any]:
        return {"$match": {"last_updated": {"$gt": self._oldest()}}}

    def _oldest(self) -> float:
        return self._clock() - self._expire_days * _DAY_S


def _shares(found: Sequence[VersionMetadata], name: str) -> list[float] | None:
    """Return the probability of each version by one of its numbers; None where all are 0."""
    weights = np.array([each.md.get(name, 0.0) for each in found])
    if weights.min() < 0:
        wrong = found[int(weights.argmin())]
        raise ConfigurationError(
            f"md.{name} of version {wrong.version} is {wrong.md[name]:g}: {DRAW} needs numbers of "
            "0 or more"
        )
    total = weights.sum()
    return list(weights / total) if total > 0 else None
