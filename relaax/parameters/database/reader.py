"""Reads a database."""

import hashlib
import logging
import threading
import time

import numpy as np

from relaax.checkpoints import BlobStore
from relaax.errors import ConfigurationError, DamagedCheckpoint, NoSuchVersion
from relaax.parameters.database.index import Index, read_index
from relaax.parameters.database.metadata import Metadata, VersionMetadata
from relaax.parameters.database.policy_values import PolicyValues, StoredVersion
from relaax.parameters.database.query import Query
from relaax.processes.identifiers import LATEST, Identifier
from relaax.telemetry.throttled_log import of_kind

#: A reader that waits looks so often.
_LOOK_S = 0.5

#: A message has so many tags.
_LISTED = 10

_log = logging.getLogger(__name__)


class ParameterDatabase:
    """The versions of a policy's values, to read. For many threads.

    It sees each change of the writer as a whole. A version never changes; it may go while it is
    read, if nothing tags it. ``metadata``: those of its versions; None for a database without
    (``Type.FILESYSTEM``). ConfigurationError if it is the other way there.
    """

    def __init__(self, store: BlobStore, metadata: Metadata | None = None) -> None:
        self._store = store
        self._metadata = metadata
        self._changed = threading.Condition(threading.RLock())

    def get(self, identifier: Identifier = LATEST, block: float | None = None) -> StoredVersion:
        """Return a version; wait up to ``block`` seconds for it.

        NoSuchVersion if there is none; DamagedCheckpoint if its bytes are not those that were
        pushed.
        """
        until = time.monotonic() + (block or 0.0)
        while True:
            try:
                return self._read(identifier)
            except NoSuchVersion:
                left_s = until - time.monotonic()
                if left_s <= 0:
                    raise
            with self._changed:
                self._changed.wait(min(left_s, _LOOK_S))

    def version_of(self, identifier: Identifier = LATEST) -> int:
        """Return the number of a version; NoSuchVersion if there is none."""
        return self._resolve(self._index(), identifier)

    def list_versions(self) -> list[int]:
        """Return the numbers of all versions, the oldest first."""
        return sorted(self._index().versions)

    def list_tags(self) -> dict[str, int]:
        """Return the version of each tag; ``latest`` is among them."""
        index = self._index()
        latest = {} if index.latest is None else {LATEST: index.latest}
        return {**latest, **index.tags}

    def stage_of(self, curriculum: str) -> str | None:
        """Return the name of the present stage of a curriculum; None before its second one."""
        return self._index().stages.get(curriculum)

    def has_tag(self, tag: str) -> bool:
        """Return whether a version has a tag."""
        return self._index().tagged(tag) is not None

    def metadata_of(self, version: int) -> VersionMetadata | None:
        """Return the metadata of a version; None where it has none, or they have expired."""
        return None if self._metadata is None else self._metadata.of(version)

    @property
    def kind(self) -> str | None:
        """Where metadata are; None in a database without."""
        return None if self._metadata is None else self._metadata.kind

    def close(self) -> None:
        """Close the connections to the metadata."""
        if self._metadata is not None:
            self._metadata.close()

    def location(self) -> str:
        """Return where the database is, for messages."""
        return self._store.location()

    def _index(self) -> Index:
        return read_index(self._store, self.kind) or Index(metadata=self.kind)

    def _resolve(self, index: Index, identifier: Identifier) -> int:
        if isinstance(identifier, str):
            version = index.tagged(identifier)
            if version is None:
                raise NoSuchVersion(
                    f"no version in {self.location()} has the tag {identifier!r}; the last tags "
                    f"there: {', '.join(list(index.tags)[-_LISTED:]) or 'none'}"
                )
            return version
        if not isinstance(identifier, int | np.integer):
            return self._chosen(index, identifier)
        if identifier not in index.versions:
            raise NoSuchVersion(
                f"there is no version {identifier} in {self.location()}; the latest is "
                f"{index.latest}"
            )
        return int(identifier)

    def _chosen(self, index: Index, query: Query) -> int:
        """Return a version that a query leads to, or the latest where it leads to none."""
        if self._metadata is None:
            raise ConfigurationError(
                f"{self.location()} is a parameter database without metadata (Type.FILESYSTEM): it "
                f"cannot answer the query {query!r}"
            )
        chosen = self._metadata.choose(query, index.versions)
        if chosen is not None:
            return chosen
        if index.latest is None:
            raise NoSuchVersion(
                f"the query {query!r} leads to no version in {self.location()}, and there is no "
                f"{LATEST!r} either"
            )
        _log.warning(
            "the query %r leads to no version in %s: the latest, %d, takes its place",
            query,
            self.location(),
            index.latest,
            extra=of_kind("a query leads to no version"),
        )
        return index.latest

    def _read(self, identifier: Identifier) -> StoredVersion:
        while True:
            index = self._index()
            version = self._resolve(index, identifier)
            try:
                data = self._store.get(index.data_name(version))
            except DamagedCheckpoint:
                if version in self._index().versions:
                    raise
                continue  # it went meanwhile: its number is unknown now, and its tag has moved
            if hashlib.sha256(data).hexdigest() != index.versions[version].sha256:
                raise DamagedCheckpoint(
                    f"{index.data_name(version)} in {self.location()} is not what was pushed"
                )
            values = PolicyValues.from_bytes(data)
            return StoredVersion(version, values, index.versions[version].pushed_at)
