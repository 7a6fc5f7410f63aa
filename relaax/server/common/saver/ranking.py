"""Which checkpoints are best."""

from collections.abc import Iterable

from relaax.server.common.saver.manifest import CheckpointManifest
from relaax.server.common.saver.scores import CheckpointScores
from relaax.server.common.saver.store import BlobStore

#: Checkpoints are not compared by means of fewer episodes of the training.
LEAST_EPISODES = 10


class Ranking:
    """Compares checkpoints by the scores of evaluations, or else by the training's mean returns.

    Evaluations decide alone as soon as one checkpoint has a score: they are of the policy's mode,
    and those of the training are not. Checkpoints that are deleted when the next one is saved have
    no place.
    """

    def __init__(self, store: BlobStore) -> None:
        self.scores = CheckpointScores(store)
        #: By step.
        self._returns: dict[int, float] = {}

    def load(self, manifests: Iterable[CheckpointManifest]) -> None:
        """Take note of all checkpoints that there are, and read their scores."""
        self._returns = {}
        for manifest in manifests:
            self.note(manifest)
            self.scores.load([manifest.global_t])

    def note(self, manifest: CheckpointManifest) -> None:
        """Take note of what a training had earned when it saved a checkpoint."""
        self._returns.pop(manifest.global_t, None)
        earned, is_enough = manifest.mean_return, manifest.episodes >= LEAST_EPISODES
        if earned is not None and is_enough and not manifest.until_next:
            self._returns[manifest.global_t] = earned

    def forget(self, steps: Iterable[int]) -> None:
        """Forget checkpoints that are no more."""
        gone = set(steps)
        self.scores.forget(gone)
        self._returns = {step: each for step, each in self._returns.items() if step not in gone}

    def best(self) -> list[int]:
        """Return the steps of which it is known how good they are: the best first.

        Of equal ones the newest is the better one.
        """
        by_return = sorted(((mean, step) for step, mean in self._returns.items()), reverse=True)
        return self.scores.best() or [step for _, step in by_return]
