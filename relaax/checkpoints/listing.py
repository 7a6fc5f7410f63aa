"""Facts about all checkpoints in a place."""

from dataclasses import dataclass

from relaax.checkpoints.manifest import CheckpointManifest, manifest_in, steps_of_manifests
from relaax.checkpoints.scores import Ranking, Score
from relaax.checkpoints.store import BlobStore


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
