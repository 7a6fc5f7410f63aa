"""How good the policies of checkpoints are, by evaluations."""

import logging
import re
import threading
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from relaax.checkpoints.manifest import CheckpointManifest
from relaax.checkpoints.store import BlobStore
from relaax.errors import DamagedCheckpoint

#: Checkpoints are not compared by means of fewer episodes of the training.
LEAST_EPISODES = 10

_log = logging.getLogger(__name__)

_NAME = re.compile(r"cp-(0|[1-9][0-9]*)\.score\.json")


class Score(BaseModel):
    """The mean score of a checkpoint's policy: the content of ``cp-<step>.score.json``."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    #: The episodes were played with versions after this one,
    after_version: int
    #: and up to this one, which is the checkpoint's.
    version: int
    #: The mean of their scores.
    score: float = 0.0
    episodes: int = Field(default=0, ge=0)
    _is_changed: bool = False

    def add(self, score: float) -> None:
        """Take the score of one more episode."""
        total = self.score * self.episodes + score
        self.episodes += 1
        self.score = total / self.episodes
        self._is_changed = True

    def changed(self) -> bytes | None:
        """Return the content to write; None if it was returned before."""
        is_changed, self._is_changed = self._is_changed, False
        return self.model_dump_json(indent=2).encode() if is_changed else None


class Ranking:
    """Compares checkpoints by the scores of evaluations, or else by the training's mean returns.

    Evaluations decide alone as soon as one checkpoint has a score: they are of the policy's mode,
    and the training's returns are not. Checkpoints that are deleted at the next save have no place.

    The mean score of a checkpoint is beside it in the store, as ``cp-<step>.score.json``.
    Evaluations are of versions, and few versions are saved: a score is of the episodes that
    were played with the checkpoint's version, or with a later one than the checkpoint before it. An
    episode may end after its checkpoint was saved: it counts at the next ``write``. Many threads
    may call ``add``.
    """

    def __init__(self, store: BlobStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._scored: dict[int, Score] = {}
        #: Of versions that no checkpoint has yet.
        self._waiting: list[tuple[int, float]] = []
        self._last_version = -1
        #: By step: the training's mean return.
        self._returns: dict[int, float] = {}

    def add(self, version: int, score: float) -> None:
        """Take the score of an episode that was played with ``version``."""
        with self._lock:
            if version > self._last_version:
                self._waiting.append((version, score))
                return
            for scored in self._scored.values():
                if scored.after_version < version <= scored.version:
                    scored.add(score)

    def load(self, manifests: Iterable[CheckpointManifest]) -> None:
        """Take note of all checkpoints that there are, and read their scores."""
        self._returns = {}
        for manifest in manifests:
            self.note(manifest)
            step = manifest.global_t
            try:
                score = Score.model_validate_json(self._store.get(score_name(step)))
            except DamagedCheckpoint:
                continue  # there is no score yet
            except ValidationError:
                _log.warning("%s in %s is no score", score_name(step), self._store.location())
                continue
            with self._lock:
                self._scored[step] = score

    def note(self, manifest: CheckpointManifest) -> None:
        """Note the training's returns when it saved a checkpoint."""
        self._returns.pop(manifest.global_t, None)
        earned, is_enough = manifest.mean_return, manifest.episodes >= LEAST_EPISODES
        if earned is not None and is_enough and not manifest.until_next:
            self._returns[manifest.global_t] = earned

    def go_on_from(self, step: int, version: int) -> None:
        """Take note that a checkpoint was restored: its own version may be evaluated now."""
        with self._lock:
            self._scored.setdefault(step, Score(after_version=version - 1, version=version))
            self._last_version = version

    def saved(self, step: int, version: int) -> None:
        """Take note of a checkpoint that has just been saved."""
        with self._lock:
            new = Score(after_version=self._last_version, version=version)
            scored = self._scored.setdefault(step, new)
            scored.version = self._last_version = version
            for of, score in self._waiting:
                if of <= version:
                    scored.add(score)
            self._waiting = [(of, score) for of, score in self._waiting if of > version]

    def forget(self, steps: Iterable[int]) -> None:
        """Forget checkpoints that were deleted."""
        with self._lock:
            for step in steps:
                self._scored.pop(step, None)
                self._returns.pop(step, None)

    def write(self) -> None:
        """Write the scores that have changed; CheckpointError if one cannot be written."""
        with self._lock:
            changed = {step: score.changed() for step, score in self._scored.items()}
        for step, content in changed.items():
            if content is not None:
                self._store.put(score_name(step), content)

    def of(self, step: int) -> Score | None:
        """Return the score of a checkpoint; None where no episode was played with its policy."""
        with self._lock:
            scored = self._scored.get(step)
            return scored.model_copy() if scored is not None and scored.episodes else None

    def best(self) -> list[int]:
        """Return the ranked steps: the best first, of equal ones the newest."""
        with self._lock:
            scored = {step: each.score for step, each in self._scored.items() if each.episodes}
        means = scored or self._returns
        return sorted(means, key=lambda step: (means[step], step), reverse=True)


def score_name(step: int) -> str:
    """Return the name of the file with the score of a checkpoint."""
    return f"cp-{step}.score.json"


def step_of_score(name: str) -> int | None:
    """Return the step in the name of a file with a score, or None for any other name."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None
