"""Single steps of environments, for what stores them.

``recorder``  holds a step until what it led to is known
"""

from relaax.learning.steps.recorder import ACTION, StepRecorder, observations_in, schema_of

__all__ = ["ACTION", "StepRecorder", "observations_in", "schema_of"]
