"""Reads a database."""

import hashlib
import threading
import time
from collections.abc import Callable

from relaax.checkpoints import BlobStore
from relaax.errors import DamagedCheckpoint, NoSuchVersion
from relaax.parameters.database.index import Index, read_index
from relaax.parameters.database.names import LATEST, Identifier
from relaax.parameters.database.policy_values import PolicyValues, StoredVersion

#: A reader that waits looks so often.
_LOOK_S = 0.5


class ParameterDatabase:
    """The versions of a policy's values, to read. For many threads.

    It sees each change of the writer as a whole. A version never changes; it may go while it is
    read, if nothing tags it.
    """

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._changed = threading.Condition(threading.RLock())

    def get(self, identifier: Identifier = LATEST, block: float | None = None) -> StoredVersion:
        """Return a version; wait up to ``block`` seconds for it.

        NoSuchVersion if there is none; DamagedCheckpoint if its bytes are not those that were
        pushed.
        """
        return self._within(block, lambda: self._read(identifier))

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

    def has_tag(self, tag: str) -> bool:
        """Return whether a version has a tag."""
        return self._index().tagged(tag) is not None

    def location(self) -> str:
        """Return where the database is, for messages."""
        return self._store.location()

    def _index(self) -> Index:
        return read_index(self._store) or Index()

    def _resolve(self, index: Index, identifier: Identifier) -> int:
        if isinstance(identifier, str):
            version = index.tagged(identifier)
            if version is None:
                raise NoSuchVersion(
                    f"no version in {self.location()} has the tag {identifier!r}; tags there: "
                    f"{', '.join(index.tags) or 'none'}"
                )
            return version
        if identifier not in index.versions:
            raise NoSuchVersion(
                f"there is no version {identifier} in {self.location()}; the latest is "
                f"{index.latest}"
            )
        return identifier

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
                raise DamagedCheckpoint(f"{index.data_name(version)} in {self.location()}")
            values = PolicyValues.from_bytes(data)
            return StoredVersion(version, values, index.versions[version].pushed_at)

    def _within(self, block: float | None, read: Callable[[], StoredVersion]) -> StoredVersion:
        until = time.monotonic() + (block or 0.0)
        while True:
            try:
                return read()
            except NoSuchVersion:
                left_s = until - time.monotonic()
                if left_s <= 0:
                    raise
            with self._changed:
                self._changed.wait(min(left_s, _LOOK_S))
