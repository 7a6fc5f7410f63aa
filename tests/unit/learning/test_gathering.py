"""Rollouts wait for others until there are enough for an update."""

import learner_parts
import numpy as np
from learning_parts import Kept

from relaax.learning.placements import Gathering


def rollouts_of(*versions):
    return learner_parts.rollouts_of(len(versions), versions=versions)


def test_rollouts_are_handed_on_together_when_there_are_enough():
    kept = Kept()
    gathering = Gathering(kept, least=3)
    gathering.put(rollouts_of(1, 2))
    assert kept.rollouts == []
    gathering.put(rollouts_of(3, 4))
    assert [batch.versions.tolist() for batch in kept.rollouts] == [[1, 2, 3, 4]]


def test_what_was_handed_on_is_not_handed_on_again():
    kept = Kept()
    gathering = Gathering(kept, least=2)
    for version in range(5):
        gathering.put(rollouts_of(version))
    assert [batch.versions.tolist() for batch in kept.rollouts] == [[0, 1], [2, 3]]


def test_rollouts_of_another_kind_are_handed_on_apart():
    """Bytes would become floats that are not scaled as bytes are."""
    kept = Kept()
    gathering = Gathering(kept, least=3)
    gathering.put(learner_parts.rollouts_of(2, dtype=np.uint8))
    gathering.put(rollouts_of(1, 2, 3))
    assert [(batch.count, batch.kind) for batch in kept.rollouts] == [
        (2, np.uint8),
        (3, np.float32),
    ]


def test_what_is_gathered_when_it_is_closed_is_dropped():
    kept = Kept()
    gathering = Gathering(kept, least=3)
    gathering.put(rollouts_of(1, 2))
    gathering.close()
    assert (kept.rollouts, kept.is_closed) == ([], True)
