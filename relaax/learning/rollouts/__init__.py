"""Rollouts of many environments, as arrays.

``columns``  what one row is made of
``labels``   names beside the steps: of policies, agents and groups
``batch``    some rollouts, ready to be learnt from
``store``    writes rows, and hands out rollouts when they are full
"""

from relaax.learning.rollouts.batch import ROLLOUTS, RolloutBatch
from relaax.learning.rollouts.columns import DISTRIBUTION, LOG_PROBABILITY, NOISE, Columns
from relaax.learning.rollouts.store import RolloutStore

__all__ = [
    "DISTRIBUTION", "LOG_PROBABILITY", "NOISE", "ROLLOUTS", "Columns", "RolloutBatch",
    "RolloutStore"
]  # fmt: skip
