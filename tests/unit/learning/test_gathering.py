"""Rollouts wait for others until there are enough for an update."""

from learning_parts import SMALL_COLUMNS, Kept

from relaax.learning.gathering import GatheringSink
from relaax.learning.rollouts import RolloutBatch


def rollouts_of(*versions):
    rollouts = RolloutBatch.zeros(len(versions), 3, SMALL_COLUMNS)
    rollouts.versions[:] = versions
    return rollouts


def test_rollouts_are_handed_on_together_when_there_are_enough():
    kept = Kept()
    gathering = GatheringSink(kept, least=3)
    gathering.put(rollouts_of(1, 2))
    assert kept.rollouts == []
    gathering.put(rollouts_of(3, 4))
    assert [batch.versions.tolist() for batch in kept.rollouts] == [[1, 2, 3, 4]]


def test_what_was_handed_on_is_not_handed_on_again():
    kept = Kept()
    gathering = GatheringSink(kept, least=2)
    for version in range(5):
        gathering.put(rollouts_of(version))
    assert [batch.versions.tolist() for batch in kept.rollouts] == [[0, 1], [2, 3]]
