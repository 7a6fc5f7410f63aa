"""The index of a database: one blob, replaced as a whole, that says which versions there are."""

from collections.abc import Collection, Iterable, Mapping

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from relaax.checkpoints import BlobStore
from relaax.errors import CheckpointMismatch, ConfigurationError, DamagedCheckpoint
from relaax.processes.identifiers import LATEST

#: The name of the blob.
INDEX = "index.json"

#: Number of the format. It grows when older readers cannot read newer databases.
_FORMAT = 1


class VersionEntry(BaseModel):
    """A version of a database."""

    model_config = ConfigDict(frozen=True, strict=True)

    #: Of the data blob, in hexadecimal digits.
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    #: Seconds since 1970.
    pushed_at: float


class Index(BaseModel):
    """The versions and tags of a database. It never changes: a change makes another one.

    Version 7 is the data blob ``version-7.<12 digits>.safetensors``. It is in the database when the
    index names it: data without an entry was left by a killed process, or is about to go.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    format: int = _FORMAT
    #: Where the metadata of versions are; None in a database without (``Type.FILESYSTEM``).
    metadata: str | None = None
    latest: int | None = None
    versions: Mapping[int, VersionEntry] = {}
    tags: Mapping[str, int] = {}
    #: By the name of a curriculum.
    stages: Mapping[str, str] = {}

    def data_name(self, version: int) -> str:
        """Return the name of a version's data blob."""
        return f"version-{version}.{self.versions[version].sha256[:12]}.safetensors"

    def tagged(self, tag: str) -> int | None:
        """Return the version with a tag; None if there is none."""
        return self.latest if tag == LATEST else self.tags.get(tag)

    def with_version(self, version: int, entry: VersionEntry) -> "Index":
        """Return an index with one more version, which is the latest."""
        return self._changed(latest=version, versions={**self.versions, version: entry})

    def with_tags(self, tags: Iterable[str], version: int) -> "Index":
        """Return an index with these tags on a version."""
        return self._changed(tags={**self.tags, **dict.fromkeys(tags, version)})

    def without_tag(self, tag: str) -> "Index":
        """Return an index without a tag."""
        return self._changed(tags={key: self.tags[key] for key in self.tags if key != tag})

    def with_stage(self, curriculum: str, stage: str) -> "Index":
        """Return an index with a curriculum in this stage."""
        return self._changed(stages={**self.stages, curriculum: stage})

    def outdated(self, keep_untagged: int) -> set[int]:
        """Return the untagged versions but for the newest ones; ``latest`` is never among them."""
        return set(sorted(set(self.versions) - set(self.tags.values()))[:-keep_untagged])

    def without_versions(self, versions: Collection[int]) -> "Index":
        """Return an index without some versions."""
        kept = {key: entry for key, entry in self.versions.items() if key not in versions}
        return self._changed(versions=kept)

    def data_names(self) -> set[str]:
        """Return the names of all data blobs."""
        return {self.data_name(version) for version in self.versions}

    def _changed(self, **changes: object) -> "Index":
        return self.model_copy(update=changes)


def is_data(name: str) -> bool:
    """Return whether a blob is the data of a version, in an index or not."""
    return name.startswith("version-") and name.endswith(".safetensors")


def read_index(store: BlobStore, kind: str | None) -> Index | None:
    """Return the index of a database; None where there is no database yet.

    DamagedCheckpoint for one that cannot be read; CheckpointMismatch for one of a newer RELAAX;
    ConfigurationError for a database with another ``kind`` of metadata.
    """
    try:
        raw = store.get(INDEX)
    except DamagedCheckpoint:
        if INDEX in store.names():
            raise
        return None
    try:
        index = Index.model_validate_json(raw)
    except ValidationError as error:
        raise DamagedCheckpoint(f"{INDEX} in {store.location()}: {error}") from None
    if index.format > _FORMAT:
        raise CheckpointMismatch(
            f"{INDEX} in {store.location()} has format {index.format}, and this RELAAX reads "
            f"formats up to {_FORMAT}. Use the RELAAX that wrote it"
        )
    if index.metadata != kind:
        raise ConfigurationError(
            f"{store.location()} is a parameter database {_said(index.metadata)}, and this process "
            f"opens it as one {_said(kind)}. Give all its workers the same type of database"
        )
    return index


def _said(kind: str | None) -> str:
    return (
        "without metadata (Type.FILESYSTEM)"
        if kind is None
        else (f"with metadata in {kind} (Type.METADATA)")
    )
