"""Metadata of versions: running means of the environment's episode information."""

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from relaax.errors import ConfigurationError, NoSuchVersion
from relaax.parameters.database.query import Query, Stage, stages_of

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
    #: Means by name.
    md: Mapping[str, float] = {}

    def updated(self, means: Mapping[str, float], episodes: int, now: float) -> "VersionMetadata":
        """Return running means with those of more episodes.

        ConfigurationError for other names than before, and for values that are not finite.
        """
        if wrong := [name for name in means if not _NAME.fullmatch(name)]:
            raise ConfigurationError(
                f"a name of metadata has no dot and no $ first, is {wrong[0]!r}"
            )
        if wrong := [name for name, value in means.items() if not math.isfinite(value)]:
            raise ConfigurationError(f"metadata {wrong[0]!r} is {means[wrong[0]]}: not finite")
        if episodes < 1:
            raise ConfigurationError(f"means must be of 1 episode or more, are of {episodes}")
        if self.md and set(self.md) != set(means):
            raise ConfigurationError(
                f"the metadata of version {self.version} are {', '.join(sorted(self.md))}, and new "
                f"ones are {', '.join(sorted(means))}: they must stay the same"
            )
        total = self.count + episodes
        md = {
            name: (self.md.get(name, 0.0) * self.count + float(value) * episodes) / total
            for name, value in means.items()
        }
        return self.model_copy(update={"last_updated": now, "count": total, "md": md})


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
    def find(self, stages: Collection[Stage]) -> list[int]:
        """Return the versions that the checked stages of a query lead to."""

    @abstractmethod
    def fields(self) -> set[str]:
        """Return the names of all means."""

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

    def keep(self, versions: Collection[int]) -> None:
        """Delete the metadata of other versions than these, and expired ones."""
        kept = set(self._store.find([self._is_alive()])) & set(versions)
        self._store.delete(set(self._store.find([])) - kept)

    def choose(self, query: Query, versions: Collection[int]) -> int | None:
        """Return one of the versions that a query leads to; None where it leads to none.

        ConfigurationError for a query that is wrong. Others than ``versions`` are passed over.
        """
        try:
            stages: list[Stage] = stages_of(query, self._store.fields())
            named = self._store.find([self._is_alive(), *stages])
        except RecursionError:
            raise ConfigurationError("the conditions of a query are nested too deeply") from None
        found = [version for version in named if version in versions]
        return found[self._random.integers(len(found))] if found else None

    def _is_alive(self) -> dict[str, Any]:
        return {"$match": {"last_updated": {"$gt": self._oldest()}}}

    def _oldest(self) -> float:
        return self._clock() - self._expire_days * _DAY_S
