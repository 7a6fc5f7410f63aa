"""Metadata in a MongoDB."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from relaax.errors import CheckpointError, ConfigurationError
from relaax.parameters.database.metadata import MetadataStore, VersionMetadata
from relaax.parameters.database.names import DatabaseName
from relaax.parameters.database.query import Stage

#: How long a server may be away.
_WAIT_MS = 10_000

#: The collection with the metadata of all databases.
_COLLECTION = "parameter_metadata"


class MongoMetadata(MetadataStore):
    """Documents of a server, which answers the queries itself.

    The URL names the server and the database, for example ``mongodb://host:27017/relaax``; without
    a name it is ``relaax``. ConfigurationError for a URL that cannot be used, and without pymongo,
    which is of an extra.
    """

    kind = "MongoDB"

    def __init__(self, url: str, name: DatabaseName) -> None:
        try:
            import pymongo  # of an extra: only where it is asked for
            from pymongo.errors import PyMongoError
        except ImportError:
            raise ConfigurationError(
                "metadata in a MongoDB need the package pymongo, which the extra has: "
                "pip install 'relaax[mongodb]'"
            ) from None
        self._errors = PyMongoError
        self._name = name.path()
        try:
            self._client: Any = pymongo.MongoClient(url, serverSelectionTimeoutMS=_WAIT_MS)
            self._documents: Any = self._client.get_default_database("relaax")[_COLLECTION]
        except PyMongoError as error:
            raise ConfigurationError(f"the URL of the MongoDB cannot be used: {error}") from error

    def read(self, version: int) -> VersionMetadata | None:
        """See MetadataStore."""
        with self._errors_explained():
            found = self._documents.find_one({"_id": self._id(version)})
        return None if found is None else VersionMetadata.model_validate(found)

    def write(self, metadata: VersionMetadata) -> None:
        """See MetadataStore."""
        key = {"_id": self._id(metadata.version)}
        document = {**key, "name": self._name, **metadata.model_dump(mode="json")}
        with self._errors_explained():
            self._documents.replace_one(key, document, upsert=True)

    def delete(self, versions: Collection[int]) -> None:
        """See MetadataStore."""
        ids = [self._id(version) for version in versions]
        with self._errors_explained():
            self._documents.delete_many({"_id": {"$in": ids}})

    def find(self, stages: Collection[Stage]) -> list[VersionMetadata]:
        """See MetadataStore."""
        return [VersionMetadata.model_validate(found) for found in self._aggregated(stages)]

    def fields(self) -> set[str]:
        """See MetadataStore."""
        return {name for found in self._aggregated([_MERGED]) for name in found["md"]}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _aggregated(self, stages: Collection[Stage]) -> list[dict[str, Any]]:
        with self._errors_explained():
            return list(self._documents.aggregate([{"$match": {"name": self._name}}, *stages]))

    def _id(self, version: int) -> str:
        return f"{self._name}@{version}"

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise CheckpointError(f"cannot use the metadata in MongoDB: {error}") from error


#: One document with the names of all numbers.
_MERGED = {"$group": {"_id": None, "md": {"$mergeObjects": "$md"}}}
