"""What a learner saves, and what it goes on from."""

from relaax.algorithm_base import Checkpoint, LearnerBase, Saver
from relaax.algorithm_base.checkpoint import (
    Fingerprint,
    require_same_fingerprint,
    require_same_shapes,
)
from relaax.server.learner.finite import require_finite, require_no_nan


def checkpoint_of(learner: LearnerBase, step: int, fingerprint: Fingerprint) -> Checkpoint:
    """Return what a learner has reached.

    LearningDiverged where its parameters are not finite, or there is NaN in its state.
    """
    require_finite(learner.parameters(), step)
    state = learner.state()
    require_no_nan(state, step)
    return Checkpoint(state, step, step, fingerprint)


def restore_latest(learner: LearnerBase, saver: Saver, fingerprint: Fingerprint) -> int:
    """Restore the latest checkpoint, if any; return its count of steps.

    CheckpointMismatch where it is of another algorithm, or its arrays have other shapes.
    """
    checkpoint = saver.restore_latest()
    if checkpoint is None:
        return 0
    require_same_fingerprint(checkpoint.fingerprint, fingerprint, saver.location())
    require_same_shapes(checkpoint, learner.state())
    learner.restore(checkpoint.tensors)
    print(f"restored step {checkpoint.version:,} from {saver.location()}", flush=True)
    return checkpoint.version
