"""The checkpoints of a learner: what is saved, what is refused, and what it goes on from."""

import numpy as np
import pytest

from relaax.algorithm_base import DEFAULT, Checkpoint, Learner
from relaax.errors import CheckpointMismatch, LearningDiverged
from relaax.server.learner.builder import checkpoint_of, restore_latest
from relaax.server.learner.publishing import require_finite

FINGERPRINT = {"learner of": "sac"}


class Kept(Learner):
    def __init__(self, **arrays):
        self.arrays = {"best": np.float64([-np.inf]), "critics": np.float32([1, 2])} | arrays

    def steps(self, batches):
        yield from ()

    def values(self):
        return {DEFAULT: self.arrays["critics"]}

    def state(self):
        return self.arrays

    def restore(self, state):
        self.arrays = state


class Saver:
    def __init__(self, checkpoint):
        self.checkpoint = checkpoint

    def restore_latest(self):
        return self.checkpoint

    def location(self):
        return "the disk"


def test_a_learner_goes_on_from_what_it_has_saved(capsys):
    saved = checkpoint_of(Kept(critics=np.float32([3, 4])), 42, FINGERPRINT)
    learner = Kept()
    assert restore_latest(learner, Saver(saved), FINGERPRINT) == 42
    assert learner.values()[DEFAULT].tolist() == [3, 4]
    assert capsys.readouterr().out == "restored step 42 from the disk\n"


def test_what_an_earlier_version_has_saved_is_converted_before_it_is_compared():
    class Shorter(Kept):
        def converted(self, state):
            return {**state, "critics": state["critics"][:2]}

    saved = checkpoint_of(Kept(critics=np.float32([3, 4, 5])), 42, FINGERPRINT)
    learner = Shorter()
    restore_latest(learner, Saver(saved), FINGERPRINT)
    assert learner.values()[DEFAULT].tolist() == [3, 4]


def test_without_a_checkpoint_it_begins():
    assert restore_latest(Kept(), Saver(None), FINGERPRINT) == 0


def test_nan_is_not_saved():
    learner = Kept(slots=np.float32([0, np.nan]))
    with pytest.raises(LearningDiverged, match=r"after 7 steps .* there is NaN in its slots"):
        checkpoint_of(learner, 7, FINGERPRINT)


def test_parameters_that_are_infinite_are_not_saved():
    """What is restored is published first, and would be refused then for ever."""
    learner = Kept(critics=np.float32([0, np.inf]))
    with pytest.raises(LearningDiverged, match="its parameters are not finite"):
        checkpoint_of(learner, 7, FINGERPRINT)


def test_an_infinity_is_saved_as_a_best_score_may_be_one():
    assert checkpoint_of(Kept(), 7, FINGERPRINT).tensors["best"] == [-np.inf]


def test_counts_and_names_are_saved_unlooked_at():
    learner = Kept(count=np.int64([3]), names=np.array([b"a"]))
    assert checkpoint_of(learner, 7, FINGERPRINT).tensors["count"] == [3]


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_parameters_that_are_published_must_be_finite(number):
    require_finite({"default": np.float32([0, 1])}, 7)
    with pytest.raises(LearningDiverged, match="after 7 steps of the learner its parameters are"):
        require_finite({"other": np.float32([0, number])}, 7)


def test_a_checkpoint_of_another_algorithm_is_refused():
    saved = checkpoint_of(Kept(), 42, {"learner of": "dqn"})
    with pytest.raises(CheckpointMismatch, match="learner of"):
        restore_latest(Kept(), Saver(saved), FINGERPRINT)


def test_a_checkpoint_of_another_network_is_refused():
    saved = Checkpoint(Kept(critics=np.float32([1])).state(), 42, 42, FINGERPRINT)
    with pytest.raises(CheckpointMismatch, match="critics"):
        restore_latest(Kept(), Saver(saved), FINGERPRINT)
