"""Episodes that candidates of a population have played, as their learner is given them."""

import numpy as np
import numpy.typing as npt

from relaax.learning.rollouts.labels import POLICY_NAME, POLICY_STAMP, name_column
from relaax.learning.steps import EpisodeBatch


def episode(
    name: str, stamp: npt.ArrayLike, score: float, is_complete: bool = True
) -> EpisodeBatch:
    """An episode of three steps, whose rewards add up to ``score``."""
    return EpisodeBatch(
        returns=np.array([score], np.float32),
        steps=np.array([3]),
        is_complete=np.array([is_complete]),
        extras={POLICY_NAME: name_column([name]), POLICY_STAMP: np.array([stamp], np.float32)},
        statistics=np.zeros((1, 0), np.float32),
    )
