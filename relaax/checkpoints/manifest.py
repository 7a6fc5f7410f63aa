"""The manifest: the small JSON blob that turns a data blob into a checkpoint."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version as package_version
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from relaax.algorithm_base.checkpoint import Checkpoint
from relaax.checkpoints.store import BlobStore
from relaax.errors import CheckpointError, CheckpointMismatch, DamagedCheckpoint
from relaax.parameters.sender_totals import MOST_SENDERS

#: Number of the format. It grows when older readers cannot read newer checkpoints.
FORMAT = 1

#: The key of the sha256 of everything else; older manifests have none.
_CHECK = "check"

_MANIFEST_NAME = re.compile(r"cp-(0|[1-9][0-9]*)\.json")
_DATA_NAME = re.compile(r"cp-(0|[1-9][0-9]*)\.[0-9a-f]{12}\.safetensors")


#: The number of a sender of steps, and a count of steps, as messages carry them: of 64 bits.
_Sender = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,19}$")]
_Total = Annotated[int, Field(ge=0, lt=2**64)]


class CheckpointManifest(BaseModel):
    """The content of ``cp-<global_t>.json``, which is written when the data blob is durable."""

    model_config = ConfigDict(frozen=True, strict=True)

    format: int = Field(ge=1)
    #: Environment steps of all agents together.
    global_t: int = Field(ge=0)
    #: Number of updates applied to the parameters.
    version: int
    #: JSON scalars and lists by name.
    fingerprint: dict[str, Any]
    #: Name of the data blob.
    data: str
    #: Bytes of the data blob.
    size: int = Field(ge=0)
    #: Of the data blob, in hexadecimal digits.
    sha256: str
    #: Version of the package that wrote the checkpoint.
    relaax: str
    #: UTC, ISO 8601.
    saved_at: str
    #: Whether it is deleted when the next one is saved.
    until_next: bool = False
    #: Mean return of the last episodes of the training when it was saved, and how many these were;
    #: None where that is not known.
    mean_return: float | None = None
    episodes: int = Field(default=0, ge=0)
    #: Which steps are among ``global_t``: of each sender, by its number, all that it had sent until
    #: then. The latest sender comes last.
    senders: dict[_Sender, _Total] = Field(default={}, max_length=MOST_SENDERS)

    def name(self) -> str:
        """Return the name of the manifest itself."""
        return manifest_name(self.global_t)

    def to_bytes(self) -> bytes:
        """Return the JSON text, with a sha256 of its content."""
        content = self.model_dump()
        return json.dumps({**content, _CHECK: _sha256_of(content)}, indent=2).encode()

    def totals(self) -> dict[int, int]:
        """Return ``senders`` as ``SenderTotals``."""
        return {int(sender): total for sender, total in self.senders.items()}

    def verify(self, data: bytes) -> None:
        """Raise DamagedCheckpoint unless ``data`` has the manifest's size and sha256."""
        if len(data) != self.size:
            raise DamagedCheckpoint(f"{self.data} has {len(data)} bytes instead of {self.size}")
        if (found := hashlib.sha256(data).hexdigest()) != self.sha256:
            raise DamagedCheckpoint(f"{self.data} has sha256 {found} instead of {self.sha256}")


def manifest_name(global_t: int) -> str:
    """Return the name of a step's manifest."""
    return f"cp-{global_t}.json"


def step_of_manifest(name: str) -> int | None:
    """Return the step in a manifest's name, or None for any other name."""
    return _step(_MANIFEST_NAME, name)


def steps_of_manifests(names: Iterable[str]) -> set[int]:
    """Return the steps of the manifests among ``names``."""
    return {step for name in names if (step := step_of_manifest(name)) is not None}


def step_of_data(name: str) -> int | None:
    """Return the step in a data blob's name, or None for any other name."""
    return _step(_DATA_NAME, name)


def describe(
    checkpoint: Checkpoint, data: bytes, totals: Mapping[int, int] | None = None
) -> CheckpointManifest:
    """Return the manifest of a checkpoint whose data blob is ``data``.

    ``totals`` are the steps of each sender among its own. CheckpointError for a negative step, or
    for a fingerprint that JSON would change.
    """
    if checkpoint.global_t < 0:
        raise CheckpointError(
            f"global_t of a checkpoint must be 0 or more, is {checkpoint.global_t}"
        )
    digest = hashlib.sha256(data).hexdigest()
    return CheckpointManifest(
        format=FORMAT,
        global_t=int(checkpoint.global_t),
        version=int(checkpoint.version),
        fingerprint=_checked_fingerprint(checkpoint.fingerprint),
        data=f"cp-{checkpoint.global_t}.{digest[:12]}.safetensors",
        size=len(data),
        sha256=digest,
        relaax=package_version("relaax"),
        saved_at=now(),
        senders={str(sender): total for sender, total in (totals or {}).items()},
    )


def now() -> str:
    """Return the time of the clock; nothing depends on it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def parse(raw: bytes, global_t: int) -> CheckpointManifest:
    """Read the manifest of step ``global_t``.

    DamagedCheckpoint if ``raw`` is not that manifest. CheckpointMismatch if a newer RELAAX wrote
    it: the checkpoint is good, and to skip it would lose the training.
    """
    name = manifest_name(global_t)
    try:
        content = json.loads(raw)
        _require_unchanged(name, content)
        _require_known_format(name, content)
        manifest = CheckpointManifest.model_validate(content)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise DamagedCheckpoint(f"{name} is not a manifest: {faults}") from None
    except (ValueError, RecursionError) as error:
        raise DamagedCheckpoint(f"{name} is not JSON: {error}") from None
    if manifest.global_t != global_t or step_of_data(manifest.data) != global_t:
        raise DamagedCheckpoint(
            f"{name} is of step {manifest.global_t} and names the data {manifest.data!r}"
        )
    return manifest


def _step(pattern: re.Pattern[str], name: str) -> int | None:
    match = pattern.fullmatch(name)
    return int(match[1]) if match else None


def manifest_in(store: BlobStore, global_t: int) -> CheckpointManifest | None:
    """Return a step's manifest; None for an unusable one.

    CheckpointError if the store cannot be reached.
    """
    try:
        return parse(store.get(manifest_name(global_t)), global_t)
    except (DamagedCheckpoint, CheckpointMismatch):
        return None


def _require_unchanged(name: str, content: Any) -> None:
    """Raise DamagedCheckpoint for a manifest that has changed since it was written."""
    if isinstance(content, dict) and _CHECK in content:
        said = {key: value for key, value in content.items() if key != _CHECK}
        if content[_CHECK] != _sha256_of(said):
            raise DamagedCheckpoint(f"{name} was changed: its sha256 is another one")


def _sha256_of(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _require_known_format(name: str, content: Any) -> None:
    number = content.get("format") if isinstance(content, dict) else None
    if isinstance(number, int) and number > FORMAT:
        raise CheckpointMismatch(
            f"{name} has format {number}, and this RELAAX reads formats up to {FORMAT}. "
            "Use the RELAAX that wrote it, or another checkpoint location"
        )


def _checked_fingerprint(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy; CheckpointError if a value would come back from JSON as another one."""
    changed = [key for key, value in fingerprint.items() if not _survives_json(key, value)]
    if changed:
        raise CheckpointError(
            "a fingerprint must hold JSON scalars and lists by name; these values are different: "
            + ", ".join(f"{key!r} is {fingerprint[key]!r}" for key in changed)
        )
    return dict(fingerprint)


def _survives_json(key: Any, value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps({key: value}, allow_nan=False)) == {key: value})
    except (TypeError, ValueError):
        return False
