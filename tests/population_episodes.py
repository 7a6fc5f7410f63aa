"""Episodes that candidates of a population have played, as their learner is given them."""

import numpy as np

from relaax.learning.rollouts import RolloutBatch
from relaax.learning.rollouts.labels import POLICY_NAME, POLICY_VERSION, name_column


def episode(name: str, version: int, score: float) -> RolloutBatch:
    """An episode of three steps, whose rewards add up to ``score``, and a row behind it."""
    zeros = np.zeros((4, 1), np.float32)
    took = np.array([[1], [1], [1], [0]], np.float32)
    names = np.repeat(name_column([name])[np.newaxis], 4, axis=0)
    return RolloutBatch(
        observations=np.zeros((5, 1, 3), np.float32),
        starts=np.zeros((5, 1), np.float32),
        actions=np.zeros((4, 1), np.int64),
        extras={POLICY_NAME: names, POLICY_VERSION: np.full((4, 1), version)},
        rewards=np.array([[1], [score - 3], [2], [99]], np.float32),
        terminated=zeros,
        valid=took,
        on_policy=took,
        recurrent_state=np.zeros((2, 1, 0), np.float32),
        versions=np.zeros(1, np.int64),
    )
