"""Writes a database."""

import hashlib
import time
from collections.abc import Callable, Collection

from relaax.checkpoints import BlobStore
from relaax.errors import NotContinued
from relaax.parameters.database.index import INDEX, Index, VersionEntry, read_index
from relaax.parameters.database.names import Identifier, require_tag
from relaax.parameters.database.policy_values import PolicyValues
from relaax.parameters.database.reader import ParameterDatabase


class DatabaseWriter(ParameterDatabase):
    """The one writer of a database: it alone changes the store. ``clock``: seconds since 1970."""

    def __init__(self, store: BlobStore, clock: Callable[[], float] = time.time) -> None:
        super().__init__(store)
        self._clock = clock
        found = read_index(store)
        self._now = found or Index()
        if found is None:
            self._replace(self._now)

    def push(self, values: PolicyValues, version: int, tags: Collection[str] = ()) -> None:
        """Store a version, the latest from now on, with these tags.

        Versions are immutable, and their numbers grow: NotContinued for another one. The same
        values again are a repeated call, which sets the tags alone.
        """
        for tag in tags:
            require_tag(tag)
        data = values.to_bytes()
        entry = VersionEntry(sha256=hashlib.sha256(data).hexdigest(), pushed_at=self._clock())
        with self._changed:
            if not self._is_stored(version, entry):
                index = self._index().with_version(version, entry)
                self._store.put(index.data_name(version), data)
            else:
                index = self._index()
            self._replace(index.with_tags(tags, version))

    def tag(self, identifier: Identifier, new_tag: str) -> int:
        """Set a tag, or move it to another version; return the version."""
        require_tag(new_tag)
        with self._changed:
            version = self.version_of(identifier)
            self._replace(self._index().with_tags([new_tag], version))
            return version

    def untag(self, tag: str) -> None:
        """Remove a tag; NoSuchVersion if no version has it."""
        require_tag(tag)
        with self._changed:
            self.version_of(tag)
            self._replace(self._index().without_tag(tag))

    def _is_stored(self, version: int, entry: VersionEntry) -> bool:
        """Return whether a version is there already; NotContinued if it cannot be pushed."""
        index = self._index()
        known, latest = index.versions.get(version), index.latest
        if known is not None:
            if known.sha256 == entry.sha256:
                return True
            raise NotContinued(
                f"version {version} in {self.location()} has other values already: a version never "
                "changes"
            )
        if version < 0 or (latest is not None and version < latest):
            raise NotContinued(
                f"version {version} cannot follow version {latest} in {self.location()}: versions "
                "grow"
            )
        return False

    def _index(self) -> Index:
        return self._now

    def _replace(self, index: Index) -> None:
        with self._changed:
            self._store.put(INDEX, index.model_dump_json().encode())
            self._now = index
            self._changed.notify_all()
