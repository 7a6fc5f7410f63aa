"""Where databases are: one for each policy, below one root."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from relaax.checkpoints import BlobStore, DirectoryStore, S3Store
from relaax.checkpoints.aws import object_key, s3_client
from relaax.configuration import AwsAccess, S3Location
from relaax.errors import ConfigurationError
from relaax.parameters.database.index import INDEX
from relaax.parameters.database.metadata import EXPIRE_DAYS, Metadata
from relaax.parameters.database.mongodb_metadata import MongoMetadata
from relaax.parameters.database.names import DatabaseName
from relaax.parameters.database.reader import ParameterDatabase
from relaax.parameters.database.sqlite_metadata import SqliteMetadata
from relaax.parameters.database.writer import KEEP_UNTAGGED, DatabaseWriter
from relaax.processes import directory_lock

_BY_DEFAULT = AwsAccess()

#: The blob with the name of the writer that came last.
_WRITER = "writer"


#: The file with the metadata in a database's folder.
_METADATA = "metadata.sqlite"


class Type(Enum):
    """The type of a database; all workers give the same one."""

    FILESYSTEM = "FILESYSTEM"
    METADATA = "METADATA"


@dataclass(frozen=True)
class DatabaseRoot:
    """A directory or a place in AWS S3. A database is its folder EXPERIMENT/TRIAL/POLICY.

    Metadata are in a file of SQLite in that folder, or in the MongoDB whose URL is given.
    """

    place: Path | S3Location
    type: Type = Type.FILESYSTEM
    aws: AwsAccess = _BY_DEFAULT
    mongodb: str = ""
    expire_days: float = EXPIRE_DAYS

    def __post_init__(self) -> None:
        """Refuse places and types that do not go together."""
        has_metadata = self.type is Type.METADATA
        if has_metadata and not self.mongodb and not isinstance(self.place, Path):
            raise ConfigurationError(
                "metadata cannot be kept in S3: give the URL of a MongoDB, or keep the databases "
                "in a directory"
            )
        if self.mongodb and not has_metadata:
            raise ConfigurationError("a MongoDB has no effect without Type.METADATA")

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
        with directory_lock.owned(folder, owner, wait_s, advice), self._opened(name) as metadata:
            store = self._store(path)
            # In S3 the first change makes the place this process's: before the index is read.
            store.put(_WRITER, owner.encode())
            yield DatabaseWriter(store, metadata, keep_untagged)

    def reader(self, name: DatabaseName) -> ParameterDatabase:
        """Open a database to read, and to close then.

        ConfigurationError where there is no such folder.
        """
        store = self._existing(name.path())
        return ParameterDatabase(store, self._metadata(name, is_only_read=True))

    def list_names(self) -> list[DatabaseName]:
        """Return the names of all databases."""
        return [
            DatabaseName(experiment, trial, policy)
            for experiment in sorted(self._existing("").folders())
            for trial in sorted(self._existing(experiment).folders())
            for policy in sorted(self._existing(f"{experiment}/{trial}").folders())
            if INDEX in self._existing(f"{experiment}/{trial}/{policy}").names()
        ]

    @contextmanager
    def _opened(self, name: DatabaseName) -> Iterator[Metadata | None]:
        metadata = self._metadata(name, is_only_read=False)
        try:
            yield metadata
        finally:
            if metadata is not None:
                metadata.close()

    def _metadata(self, name: DatabaseName, is_only_read: bool) -> Metadata | None:
        if self.type is Type.FILESYSTEM:
            return None
        if self.mongodb or not isinstance(self.place, Path):
            return Metadata(MongoMetadata(self.mongodb, name), self.expire_days)
        path = self.place / name.path() / _METADATA
        return Metadata(SqliteMetadata(path, is_only_read), self.expire_days)

    def _store(self, path: str) -> BlobStore:
        if isinstance(self.place, Path):
            return DirectoryStore(self.place / path)
        client, key = s3_client(self.aws), object_key(self.place.key, path)
        return S3Store(client, self.place.bucket, key, is_owner=True)

    def _existing(self, path: str) -> BlobStore:
        if isinstance(self.place, Path):
            return DirectoryStore(self.place / path, is_only_read=True)
        return S3Store(s3_client(self.aws), self.place.bucket, object_key(self.place.key, path))
