"""Writes a database."""

import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from relaax.checkpoints import BlobStore
from relaax.errors import ConfigurationError, NoSuchVersion, NotContinued
from relaax.parameters.database.index import INDEX, Index, VersionEntry, is_data, read_index
from relaax.parameters.database.metadata import Metadata, VersionMetadata
from relaax.parameters.database.policy_values import PolicyValues
from relaax.parameters.database.reader import ParameterDatabase
from relaax.processes.identifiers import LATEST, Identifier, require_tag

#: So many of the newest untagged versions stay.
KEEP_UNTAGGED = 10


class DatabaseWriter(ParameterDatabase):
    """The one writer of a database: it alone changes the store.

    ``metadata``: see ``ParameterDatabase``; ``keep_untagged``: so many of the newest untagged
    versions survive ``gc``; ``clock``: seconds since 1970.
    """

    def __init__(
        self,
        store: BlobStore,
        metadata: Metadata | None = None,
        keep_untagged: int = KEEP_UNTAGGED,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if keep_untagged < 1:
            raise ConfigurationError(
                f"keep_untagged must be 1 or more, is {keep_untagged}: the latest version stays"
            )
        super().__init__(store, metadata)
        self._keep_untagged = keep_untagged
        self._clock = clock
        found = read_index(store, self.kind)
        self._now = found or Index(metadata=self.kind)
        if found is None:
            self._replace(self._now)
        self._keep_metadata()

    def push(
        self,
        values: PolicyValues,
        version: int,
        tags: Collection[str] = (),
        metadata: Mapping[str, float] | None = None,
    ) -> None:
        """Store a version, the latest from now on, with these tags.

        Versions are immutable, and their numbers grow: NotContinued for another one. The same
        values again are a repeated call, which sets the tags alone. A version that is pushed with a
        tag gets metadata where the database has them; ``metadata`` are the first means.
        """
        if metadata and (self._metadata is None or not tags):
            raise ConfigurationError(
                f"version {version} cannot have metadata: they need a tag, and a database with "
                "metadata (Type.METADATA)"
            )
        first = None
        if tags and self._metadata is not None:
            first = self._metadata.first(version, metadata)
        self._push(values, version, tags, self._clock(), first)

    def tag(self, identifier: Identifier, new_tag: str) -> int:
        """Set a tag, or move it to another version; return the version."""
        require_tag(new_tag)
        with self._changed:
            version = self.version_of(identifier)
            self._replace(self._now.with_tags([new_tag], version))
            return version

    def untag(self, tag: str) -> None:
        """Remove a tag; NoSuchVersion if no version has it."""
        require_tag(tag)
        with self._changed:
            self.version_of(tag)
            self._replace(self._now.without_tag(tag))

    def set_stage(self, curriculum: str, stage: str) -> None:
        """Keep the name of the present stage of a curriculum."""
        with self._changed:
            self._replace(self._now.with_stage(curriculum, stage))

    def update_metadata(self, version: int, means: Mapping[str, float], episodes: int = 1) -> None:
        """Take the means of more episodes of a version into its running means.

        NoSuchVersion where the version has no metadata; ConfigurationError for other names than
        before, and in a database without metadata.
        """
        metadata = self._required_metadata()
        with self._changed:
            metadata.update(version, means, episodes)

    def set_numbers(self, numbers: Mapping[int, Mapping[str, float]]) -> None:
        """Set numbers in the metadata of versions, such as weights for ``$draw``.

        A tagged version without metadata gets some. NoSuchVersion for versions that are not there;
        ConfigurationError for the name of a mean, and in a database without metadata.
        """
        metadata = self._required_metadata()
        with self._changed:
            tagged = {version for tag, version in self.list_tags().items() if tag != LATEST}
            for version in numbers:
                if self.version_of(version) not in tagged:
                    raise NoSuchVersion(f"version {version} has no tag, and so no numbers")
            for version, values in numbers.items():
                metadata.set_numbers(version, values)

    def gc(self) -> list[int]:
        """Delete outdated versions and remains of killed writers; return the versions.

        A version with a tag stays, and so do the newest untagged ones, with ``latest``.
        """
        with self._changed:
            outdated = self._now.outdated(self._keep_untagged)
            if outdated:
                self._replace(self._now.without_versions(outdated))
            self._keep_metadata()
            kept = self._now.data_names()
            for name in self._store.names():
                if is_data(name) and name not in kept:
                    self._store.delete(name)
            return sorted(outdated)

    def clone(self, source: ParameterDatabase) -> None:
        """Copy versions, tags and metadata of another database into this one, which is empty.

        Versions that the other writer deletes meanwhile are left out; this stays empty until all
        others are there. ConfigurationError if this has versions, or only one of the two has
        metadata.
        """
        with self._changed:
            if (self.kind is None) != (source.kind is None):
                raise ConfigurationError(
                    f"only one of {self.location()} and {source.location()} has metadata: give "
                    "both the same type of database"
                )
            if self._now.versions:
                raise ConfigurationError(
                    f"{self.location()} has versions already: {source.location()} can be cloned "
                    "into an empty database alone"
                )
            tags = {tag: of for tag, of in source.list_tags().items() if tag != LATEST}
            index = self._now
            for version in source.list_versions():
                with suppress(NoSuchVersion):
                    found = source.get(version)
                    its_tags = [tag for tag, of in tags.items() if of == version]
                    data, metadata = found.values.to_bytes(), source.metadata_of(version)
                    entry = _entry(data, found.pushed_at)
                    index = self._stored(index, version, entry, data, metadata)
                    index = index.with_tags(its_tags, version)
            self._replace(index)

    def _push(
        self,
        values: PolicyValues,
        version: int,
        tags: Collection[str],
        pushed_at: float,
        metadata: VersionMetadata | None,
    ) -> None:
        for tag in tags:
            require_tag(tag)
        version = int(version)  # NumPy's numbers are no keys of JSON
        data = values.to_bytes()
        entry = _entry(data, pushed_at)
        with self._changed:
            index = self._now
            if not self._is_stored(version, entry):
                index = self._stored(index, version, entry, data, metadata)
            self._replace(index.with_tags(tags, version))

    def _stored(
        self,
        index: Index,
        version: int,
        entry: VersionEntry,
        data: bytes,
        metadata: VersionMetadata | None,
    ) -> Index:
        """Store the data and metadata of a version, and return the index with it."""
        index = index.with_version(version, entry)
        self._store.put(index.data_name(version), data)
        if metadata is not None and self._metadata is not None:
            self._metadata.set(metadata)
        return index

    def _required_metadata(self) -> Metadata:
        if self._metadata is None:
            raise ConfigurationError(
                f"{self.location()} is a parameter database without metadata (Type.FILESYSTEM)"
            )
        return self._metadata

    def _keep_metadata(self) -> None:
        if self._metadata is not None:
            self._metadata.keep(self._now.versions)

    def _is_stored(self, version: int, entry: VersionEntry) -> bool:
        """Return whether a version is there already; NotContinued if it cannot be pushed."""
        known, latest = self._now.versions.get(version), self._now.latest
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


def _entry(data: bytes, pushed_at: float) -> VersionEntry:
    return VersionEntry(sha256=hashlib.sha256(data).hexdigest(), pushed_at=pushed_at)
