"""Prints which checkpoints there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relaax.checkpoints.checkpoint_place import existing_store
from relaax.checkpoints.manifest import CheckpointManifest, manifest_in, steps_of_manifests
from relaax.checkpoints.scores import Ranking, Score
from relaax.checkpoints.store import BlobStore
from relaax.configuration import AwsAccess, S3Location


@dataclass(frozen=True)
class ListedCheckpoint:
    """One checkpoint."""

    step: int
    #: None where it cannot be read.
    manifest: CheckpointManifest | None
    #: Of evaluations; None without any.
    score: Score | None
    is_latest: bool
    is_best: bool


def list_checkpoints(store: BlobStore) -> list[ListedCheckpoint]:
    """Return all checkpoints of a place, the newest first; nothing is changed there.

    The data itself is not read: a damaged one shows only when it is restored. CheckpointError where
    the place cannot be reached.
    """
    steps = steps_of_manifests(store.names())
    manifests = {step: manifest_in(store, step) for step in steps}
    known = [manifest for manifest in manifests.values() if manifest is not None]
    ranking = Ranking(store)
    ranking.load(known)
    best = ranking.best()[:1]
    latest = max((manifest.global_t for manifest in known), default=None)
    return [
        ListedCheckpoint(
            step, manifests[step], ranking.scores.of(step), step == latest, step in best
        )
        for step in sorted(steps, reverse=True)
    ]


_TITLES = ("step", "saved (UTC)", "size", "mean return", "evaluated", "")

#: Columns of left-aligned text.
_ON_THE_LEFT = ("saved (UTC)", "")

_KIB, _MIB = 2**10, 2**20


def print_checkpoints(directory: Path | None, s3: S3Location | None, aws: AwsAccess) -> int:
    """Print a table of the checkpoints of a place, and return the exit status.

    ConfigurationError for a place that is not given, or cannot be read.
    """
    store = existing_store(directory, s3, aws, "--list-checkpoints")
    found = list_checkpoints(store)
    if found:
        print("\n".join([f"checkpoints in {store.location()}:", *table(found)]))
    else:
        print(f"there is no checkpoint in {store.location()}")
    return 0


def table(found: Sequence[ListedCheckpoint]) -> list[str]:
    """Return the lines of a table, with a line of titles."""
    rows = [_TITLES, *(_row(each) for each in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_TITLES))]
    return ["  ".join(map(_aligned, _TITLES, row, widths)).rstrip() for row in rows]


def _aligned(title: str, text: str, width: int) -> str:
    return text.ljust(width) if title in _ON_THE_LEFT else text.rjust(width)


def _row(found: ListedCheckpoint) -> tuple[str, ...]:
    manifest, score = found.manifest, found.score
    if manifest is None:
        return (f"{found.step:,}", "", "", "", "", "its manifest cannot be read")
    words = [("latest", found.is_latest), ("best", found.is_best)]
    words.append(("until the next one", manifest.until_next))
    return (
        f"{found.step:,}",
        manifest.saved_at.partition("+")[0].replace("T", " "),
        _size(manifest.size),
        _mean(manifest.mean_return, manifest.episodes),
        "-" if score is None else _mean(score.mean, score.episodes),
        ", ".join(word for word, is_so in words if is_so),
    )


def _size(count: int) -> str:
    return f"{count / _MIB:,.1f} MiB" if count >= _MIB else f"{count / _KIB:,.1f} KiB"


def _mean(mean: float | None, episodes: int) -> str:
    return "-" if mean is None else f"{mean:.1f} ({episodes})"
