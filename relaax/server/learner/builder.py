"""Wires what a learner needs in a process of its own, and in one process with all others."""

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from relaax.algorithm_base import Checkpoint, ConfigBase, Learner, NullSaver, ParameterLink, Saver
from relaax.algorithm_base.checkpoint import (
    Fingerprint,
    completed,
    require_same_fingerprint,
    require_same_shapes,
)
from relaax.checkpoints import BlobStore, CheckpointSaver
from relaax.checkpoints.checkpoint_place import saver_of, store_of
from relaax.configuration import AlgorithmSection, LearnerConfiguration, LearnerOptions
from relaax.configuration.algorithm_loader import Algorithm
from relaax.processes.directory_lock import owned
from relaax.replay.mixed import SampleSource
from relaax.server.learner.lineage import LearnerLineage, lineage_in
from relaax.server.learner.loop import LearnerLoop
from relaax.server.learner.publishing import PublishClock, require_finite, require_no_nan
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.metrics import LEARNER, WaitReport


def checkpoint_of(learner: Learner, step: int, fingerprint: Fingerprint) -> Checkpoint:
    """Return what a learner has reached.

    LearningDiverged where its parameters are not finite, or there is NaN in its state.
    """
    require_finite(learner.values(), step)
    state = learner.state()
    require_no_nan(state, step)
    return Checkpoint(state, step, step, fingerprint)


def restore_latest(learner: Learner, saver: Saver, fingerprint: Fingerprint) -> int:
    """Restore the latest checkpoint, if any; return its count of steps.

    CheckpointMismatch where it is of another algorithm, or its arrays have other shapes.
    """
    checkpoint = saver.restore_latest()
    if checkpoint is None:
        return 0
    restore(learner, checkpoint, fingerprint, saver.location())
    print(f"restored step {checkpoint.version:,} from {saver.location()}", flush=True)
    return checkpoint.version


def restore(
    learner: Learner,
    checkpoint: Checkpoint,
    fingerprint: Fingerprint,
    location: str,
    iteration: int | None = None,
) -> None:
    """Let a learner go on from a checkpoint; CheckpointMismatch where it does not fit.

    With ``iteration`` the checkpoint is another learner's, and this one has taken so many steps.
    """
    require_same_fingerprint(checkpoint.fingerprint, fingerprint, location)
    state = learner.state()
    tensors = learner.converted(checkpoint.tensors)
    checkpoint = completed(replace(checkpoint, tensors=tensors), state)
    require_same_shapes(checkpoint, state)
    if iteration is None:
        learner.restore(checkpoint.tensors)
    else:
        learner.adopt(checkpoint.tensors, iteration)


@dataclass(frozen=True)
class RestoredLearner:
    """A learner that goes on from its latest checkpoint, and what saves the next ones."""

    learner: Learner
    #: How many steps it has taken.
    iteration: int
    saver: CheckpointSaver | NullSaver
    #: Where checkpoints are; None where none is saved.
    store: BlobStore | None
    fingerprint: Fingerprint
    lineage: LearnerLineage

    def save(self, step: int) -> None:
        """Save what the learner has reached with so many steps."""
        self.saver.save(checkpoint_of(self.learner, step, self.fingerprint))
        self.lineage.saved(step)


def make_learner(
    algorithm: Algorithm, config: ConfigBase, section: AlgorithmSection, resources: ExitStack
) -> Learner:
    """Return a new learner, which ``resources`` will close."""
    learner = algorithm.make_learner(config, section.parameters.get("seed"))
    resources.callback(learner.close)
    return learner


def restore_learner(
    learner: Learner, config: ConfigBase, configuration: LearnerConfiguration, resources: ExitStack
) -> RestoredLearner:
    """Restore the latest checkpoint, if any; ``resources`` hold the directory and the saver."""
    options = configuration.options
    resources.enter_context(owned(options.checkpoint_dir, "relaax-learner"))
    place = options.checkpoint_dir, options.checkpoint_aws_s3
    store = store_of(*place, options.aws)
    saver = saver_of(store, options.checkpoints_to_keep, options.keep_best, options.restore)
    if isinstance(saver, CheckpointSaver):
        resources.callback(saver.close)
    fingerprint = {"learner of": configuration.algorithm.directory.name, **config.units()}
    iteration = restore_latest(learner, saver, fingerprint)
    lineage = lineage_in(store, iteration, options.start_afresh)
    return RestoredLearner(learner, iteration, saver, store, fingerprint, lineage)


def random_numbers(section: AlgorithmSection) -> np.random.Generator:
    """Return where a replay's random numbers come from: the seed, if there is one."""
    seed = section.parameters.get("seed")
    return np.random.default_rng(secrets.randbits(64) if seed is None else [seed, 1])


def make_loop(
    restored: RestoredLearner,
    source: SampleSource,
    bridge: ParameterLink,
    options: LearnerOptions,
    save: Callable[[int], None],
    tend: Callable[[], object] = lambda: None,
) -> LearnerLoop:
    """Return what drives the learner, whose results go to ``bridge``."""
    return LearnerLoop(
        restored.learner,
        source,
        bridge,
        PublishClock(options.publish_interval, options.publish_every),
        IntervalMetrics(bridge.metrics()),
        save,
        options.checkpoint_interval,
        first_iteration=restored.iteration,
        depth=options.prefetch,
        threads=options.prefetch_threads,
        tend=tend,
        waits=WaitReport(bridge.metrics(), LEARNER),
    )
