"""Where databases are: one for each policy, below one root."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from relaax.checkpoints import BlobStore, DirectoryStore, S3Store
from relaax.checkpoints.aws import object_key, s3_client
from relaax.configuration import AwsAccess, S3Location
from relaax.parameters.database.index import INDEX
from relaax.parameters.database.names import DatabaseName
from relaax.parameters.database.reader import ParameterDatabase
from relaax.parameters.database.writer import KEEP_UNTAGGED, DatabaseWriter
from relaax.processes import directory_lock

_BY_DEFAULT = AwsAccess()

#: The blob with the name of the writer that came last.
_WRITER = "writer"


@dataclass(frozen=True)
class DatabaseRoot:
    """A directory or a place in AWS S3. A database is its folder EXPERIMENT/TRIAL/POLICY."""

    place: Path | S3Location
    aws: AwsAccess = _BY_DEFAULT

    @contextmanager
    def writer(
        self,
        name: DatabaseName,
        owner: str,
        keep_untagged: int = KEEP_UNTAGGED,
        wait_s: float = directory_lock.WAIT_S,
    ) -> Iterator[DatabaseWriter]:
        """Open a database as its one writer, within a block; it is made if it is missing.

        ``owner`` is what the process calls itself. ConfigurationError, which names the owner, if
        the database in a directory has another writer for longer than ``wait_s``. S3 has no locks:
        there, the writer that came first gets TakenOver at its next change.
        """
        path = name.path()
        folder = self.place / path if isinstance(self.place, Path) else None
        advice = "a parameter database has one writer; stop that, or choose another name"
        with directory_lock.owned(folder, owner, wait_s, advice):
            store = self._store(path)
            # In S3 the first change makes the place this process's: before the index is read.
            store.put(_WRITER, owner.encode())
            yield DatabaseWriter(store, keep_untagged)

    def reader(self, name: DatabaseName) -> ParameterDatabase:
        """Open a database to read; ConfigurationError where there is no such folder."""
        return ParameterDatabase(self._existing(name.path()))

    def list_names(self) -> list[DatabaseName]:
        """Return the names of all databases."""
        return [
            DatabaseName(experiment, trial, policy)
            for experiment in sorted(self._existing("").folders())
            for trial in sorted(self._existing(experiment).folders())
            for policy in sorted(self._existing(f"{experiment}/{trial}").folders())
            if INDEX in self._existing(f"{experiment}/{trial}/{policy}").names()
        ]

    def _store(self, path: str) -> BlobStore:
        if isinstance(self.place, Path):
            return DirectoryStore(self.place / path)
        client, key = s3_client(self.aws), object_key(self.place.key, path)
        return S3Store(client, self.place.bucket, key, is_owner=True)

    def _existing(self, path: str) -> BlobStore:
        if isinstance(self.place, Path):
            return DirectoryStore(self.place / path, is_only_read=True)
        return S3Store(s3_client(self.aws), self.place.bucket, object_key(self.place.key, path))
