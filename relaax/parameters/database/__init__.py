"""The parameter database: immutable versions of a policy's values, with tags, in a ``BlobStore``.

There is one for each policy of a trial of an experiment, with one writer (seed 002, "About tags").

``root``              ``DatabaseRoot``: where databases are; opens and lists them
``reader``            ``ParameterDatabase``: gets versions by number, tag or query
``writer``            ``DatabaseWriter``: pushes and tags versions, deletes outdated ones
``index``             the blob that says which versions and tags there are
``policy_values``     the values of a version, as bytes and back
``names``             names of databases
``metadata``          running means of episode information for each version, their expiry
``query``             MongoDB queries, checked
``sqlite_metadata``   metadata in a file
``mongodb_metadata``  metadata in a MongoDB
"""

from relaax.parameters.database.metadata import Metadata, VersionMetadata
from relaax.parameters.database.mongodb_metadata import MongoMetadata
from relaax.parameters.database.names import DatabaseName
from relaax.parameters.database.policy_values import PolicyValues, StoredVersion
from relaax.parameters.database.reader import ParameterDatabase
from relaax.parameters.database.root import DatabaseRoot, Type
from relaax.parameters.database.sqlite_metadata import SqliteMetadata
from relaax.parameters.database.writer import DatabaseWriter
from relaax.processes.identifiers import LATEST, Identifier

__all__ = [
    "LATEST", "DatabaseName", "DatabaseRoot", "DatabaseWriter", "Identifier", "Metadata",
    "MongoMetadata", "ParameterDatabase", "PolicyValues", "SqliteMetadata", "StoredVersion", "Type",
    "VersionMetadata"
]  # fmt: skip
