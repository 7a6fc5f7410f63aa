"""Single steps of environments, on their way to a replay.

``recorder``       holds a step until what it led to is known
"""

from relaax.learning.steps.recorder import (
    ACTION,
    LIKELIHOOD,
    StepRecorder,
    extras_in,
    observations_in,
    rollouts_in,
    rollouts_of,
    schema_of,
    side_by_side,
    weighed_rollouts_of,
)

__all__ = [
    "ACTION", "LIKELIHOOD", "StepRecorder", "extras_in", "observations_in", "rollouts_in",
    "rollouts_of", "schema_of", "side_by_side", "weighed_rollouts_of"
]  # fmt: skip
