"""What is stored of a step, by the spaces of a configuration."""

from typing import Any

import numpy as np

from relaax.algorithm_base import ConfigBase
from relaax.errors import ConfigurationError
from relaax.learning.rollouts import Columns
from relaax.spaces import Space, is_nested, members, shape_of, written


def columns_of(config: ConfigBase) -> Columns:
    """Return shapes and types of states and actions; ConfigurationError if they are not known."""
    observed, acted = config.observation_space(), config.action_space()
    action_shape = None if acted is None else shape_of(acted)
    if observed is None or acted is None or action_shape is None:
        raise ConfigurationError(
            "observation_space() and action_space() of the configuration must say what is stored "
            f"of a step, and are {written(observed)} and {written(acted)}"
        )
    shape, dtype = _shape_and_dtype(observed)
    return Columns(
        observation_shape=shape,
        observation_dtype=dtype,
        action_shape=action_shape,
        action_dtype=acted.get("dtype", "float32") if acted["type"] == "Box" else np.int64,
    )


def _shape_and_dtype(space: Space) -> tuple[Any, Any]:
    """Return shape and type of an array, or shapes and types by name."""
    if is_nested(space):
        parts = {name: _shape_and_dtype(inner) for name, inner in members(space)}
        shapes = {name: shape for name, (shape, _) in parts.items()}
        return shapes, {name: dtype for name, (_, dtype) in parts.items()}
    return shape_of(space), space.get("dtype", "float32")
