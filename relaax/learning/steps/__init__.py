"""Single steps of environments, or whole episodes in a row each, on their way to a replay.

``recorder``       holds a step until what it led to is known
``episodes``       adds up an episode, of which one row is stored
"""

from relaax.learning.steps.episodes import (
    EpisodeBatch,
    EpisodeRecorder,
    EpisodeRows,
    episode_schema,
    episodes_of,
)
from relaax.learning.steps.recorder import (
    ACTION,
    LIKELIHOOD,
    StepRecorder,
    column_of,
    extras_in,
    observations_in,
    rollouts_in,
    rollouts_of,
    schema_of,
    side_by_side,
    weighed_rollouts_of,
)

__all__ = [
    "ACTION", "LIKELIHOOD", "EpisodeBatch", "EpisodeRecorder", "EpisodeRows", "StepRecorder",
    "column_of", "episode_schema", "episodes_of", "extras_in", "observations_in", "rollouts_in",
    "rollouts_of", "schema_of", "side_by_side", "weighed_rollouts_of"
]  # fmt: skip
