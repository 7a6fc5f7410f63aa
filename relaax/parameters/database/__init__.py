"""The parameter database: immutable versions of a policy's values, with tags, in a ``BlobStore``.

There is one for each policy of a trial of an experiment, with one writer (seed 002, "About tags").

``root``           where databases are; opens and lists them
``reader``         ``ParameterDatabase``: gets versions by number or tag
``writer``         ``DatabaseWriter``: pushes versions, sets and removes tags, deletes outdated ones
``index``          the blob that says which versions and tags there are
``policy_values``  the values of a version, as bytes and back
``names``          names of databases and tags, identifiers of versions
"""

from relaax.parameters.database.names import LATEST, DatabaseName, Identifier
from relaax.parameters.database.policy_values import PolicyValues, StoredVersion
from relaax.parameters.database.reader import ParameterDatabase
from relaax.parameters.database.root import DatabaseRoot
from relaax.parameters.database.writer import DatabaseWriter

__all__ = [
    "LATEST", "DatabaseName", "DatabaseRoot", "DatabaseWriter", "Identifier", "ParameterDatabase",
    "PolicyValues", "StoredVersion"
]  # fmt: skip
