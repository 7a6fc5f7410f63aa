"""Prints the table of ``--list-checkpoints``."""

from pathlib import Path

from relaax.checkpoints.checkpoint_place import existing_store
from relaax.checkpoints.manifest import CheckpointManifest, manifest_in, steps_of_manifests
from relaax.checkpoints.scores import Ranking
from relaax.checkpoints.store import BlobStore
from relaax.configuration import AwsAccess, S3Location

_TITLES = ("step", "saved (UTC)", "size", "mean return", "evaluated", "")

#: Columns of left-aligned text.
_ON_THE_LEFT = ("saved (UTC)", "")

_KIB, _MIB = 2**10, 2**20


def print_checkpoints(directory: Path | None, s3: S3Location | None, aws: AwsAccess) -> int:
    """Print a table of the checkpoints of a place, the newest first; return the exit status.

    Nothing is changed there. The data itself is not read: a damaged one shows only when it is
    restored. ConfigurationError for a place that is not given, or cannot be used; CheckpointError
    for a place that cannot be reached.
    """
    store = existing_store(directory, s3, aws, "--list-checkpoints")
    rows = _rows(store)
    if not rows:
        print(f"there is no checkpoint in {store.location()}")
        return 0
    print(f"checkpoints in {store.location()}:")
    table = [_TITLES, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(map(_aligned, _TITLES, row, widths)).rstrip())
    return 0


def _aligned(title: str, text: str, width: int) -> str:
    return text.ljust(width) if title in _ON_THE_LEFT else text.rjust(width)


def _rows(store: BlobStore) -> list[tuple[str, ...]]:
    manifests = {step: manifest_in(store, step) for step in steps_of_manifests(store.names())}
    known = [manifest for manifest in manifests.values() if manifest is not None]
    ranking = Ranking(store)
    ranking.load(known)
    latest = max((manifest.global_t for manifest in known), default=None)
    rows: list[tuple[str, ...]] = []
    for step, manifest in sorted(manifests.items(), reverse=True):
        if manifest is None:
            rows.append((f"{step:,}", "", "", "", "", "its manifest cannot be read"))
            continue
        notes = {
            "latest": step == latest,
            "best": step in ranking.best()[:1],
            "until the next one": manifest.until_next,
        }
        rows.append(_row(manifest, ranking, ", ".join(note for note in notes if notes[note])))
    return rows


def _row(manifest: CheckpointManifest, ranking: Ranking, notes: str) -> tuple[str, ...]:
    score = ranking.of(manifest.global_t)
    return (
        f"{manifest.global_t:,}",
        manifest.saved_at.partition("+")[0].replace("T", " "),
        _size(manifest.size),
        _mean(manifest.mean_return, manifest.episodes),
        "-" if score is None else _mean(score.score, score.episodes),
        notes,
    )


def _size(count: int) -> str:
    return f"{count / _MIB:,.1f} MiB" if count >= _MIB else f"{count / _KIB:,.1f} KiB"


def _mean(mean: float | None, episodes: int) -> str:
    return "-" if mean is None else f"{mean:.1f} ({episodes})"
