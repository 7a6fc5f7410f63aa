"""Single steps of environments, for what stores them.

``recorder``       holds a step until what it led to is known
"""

from relaax.learning.steps.recorder import (
    ACTION,
    StepRecorder,
    extras_in,
    observations_in,
    rollouts_in,
    schema_of,
    side_by_side,
)

__all__ = [
    "ACTION", "StepRecorder", "extras_in", "observations_in", "rollouts_in", "schema_of",
    "side_by_side"
]  # fmt: skip
