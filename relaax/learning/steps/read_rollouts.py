"""Stored steps as rollouts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.learning.rollouts import RolloutBatch
from relaax.learning.steps.recorder import (
    ACTION,
    LOG_PROBABILITY,
    RECURRENT_STATE,
    REWARD,
    VERSION,
    observations_in,
)
from relaax.replay.storage import TERMINATED

Array = npt.NDArray[Any]


def rollouts_in(columns: Mapping[str, Array]) -> RolloutBatch:
    """Return what a view of ``relaax.replay.rollouts.Rollouts`` has read, as rollouts.

    Rows of a burn-in are rows that are not valid. ``versions`` are those of the oldest action of
    each rollout; of one without an action, the largest number that there is.
    """
    valid = columns["valid"][:-1]
    versions = np.where(valid, columns[VERSION][:-1], np.iinfo(np.int64).max)
    return RolloutBatch(
        observations=observations_in(columns),
        starts=columns["begins"].astype(np.float32),
        actions=columns[ACTION][:-1],
        log_probabilities=columns[LOG_PROBABILITY][:-1],
        rewards=columns[REWARD][:-1],
        terminated=(columns["flags"][:-1] & TERMINATED != 0).astype(np.float32),
        valid=valid.astype(np.float32),
        recurrent_state=_first_state(columns),
        versions=versions.min(axis=0),
    )


def _first_state(columns: Mapping[str, Array]) -> npt.NDArray[np.float32]:
    """Return the recurrent state before the first row, [2, K, H]; H is 0 without any."""
    stored = columns.get(RECURRENT_STATE)
    if stored is None:
        return np.zeros((2, columns["valid"].shape[1], 0), np.float32)
    first: npt.NDArray[np.float32] = stored[0].swapaxes(0, 1)
    return first
