"""Writes a policy as a TensorFlow SavedModel."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from relaax.errors import ConfigurationError
from relaax.server.export.check import PolicyFunction
from relaax.server.export.graph_tf import PolicyGraph

_SIGNATURE = "serving_default"


def write_saved_model(graph: PolicyGraph, directory: Path) -> None:
    """Write a SavedModel whose signature ``serving_default`` takes and returns tensors by name.

    ConfigurationError where the directory cannot be written.
    """
    try:
        tf.saved_model.save(graph, str(directory), signatures=graph.call)
    except (OSError, tf.errors.OpError) as error:
        raise ConfigurationError(f"--saved-model: cannot write {directory}: {error}") from error


def read_saved_model(directory: Path) -> PolicyFunction:
    """Return what a written SavedModel does."""
    signature = tf.saved_model.load(str(directory)).signatures[_SIGNATURE]

    def act(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = signature(**{name: tf.constant(value) for name, value in inputs.items()})
        return {name: value.numpy() for name, value in outputs.items()}

    return act
