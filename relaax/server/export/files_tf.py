"""Writes a policy as an ONNX file or a TensorFlow SavedModel, and reads it back."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import tensorflow as tf

from relaax.errors import ConfigurationError
from relaax.server.export.check import PolicyFunction
from relaax.server.export.graph_tf import PolicyGraph

_SIGNATURE = "serving_default"

#: The version of ONNX's operators: known to runtimes of the last years.
OPSET = 17

#: The name of the first axis of all inputs and outputs.
_ENVIRONMENTS = "environments"


def write_saved_model(graph: PolicyGraph, directory: Path) -> None:
    """Write a SavedModel whose signature ``serving_default`` takes and returns tensors by name.

    ConfigurationError if the directory cannot be written.
    """
    try:
        tf.saved_model.save(graph, str(directory), signatures=graph.call)
    except (OSError, tf.errors.OpError) as error:
        raise ConfigurationError(f"--saved-model: cannot write {directory}: {error}") from error


def read_saved_model(directory: Path) -> PolicyFunction:
    """Return the function of a written SavedModel."""
    signature = tf.saved_model.load(str(directory)).signatures[_SIGNATURE]

    def act(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        outputs = signature(**{name: tf.constant(value) for name, value in inputs.items()})
        return {name: value.numpy() for name, value in outputs.items()}

    return act


def write_onnx(graph: PolicyGraph, file: Path) -> None:
    """Write an ONNX file whose inputs and outputs have the names of the signature.

    ConfigurationError without its libraries, or if the file cannot be written.
    """
    model, _ = _library("tf2onnx").convert.from_function(
        graph.call, input_signature=graph.call.input_signature, opset=OPSET
    )
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = _ENVIRONMENTS
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(model.SerializeToString())
    except OSError as error:
        raise ConfigurationError(f"--onnx: cannot write {file}: {error.strerror}") from error


def read_onnx(file: Path) -> PolicyFunction:
    """Return the function of a written file."""
    session = _library("onnxruntime").InferenceSession(
        str(file), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]

    def act(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return dict(zip(names, session.run(names, dict(inputs)), strict=True))

    return act


def require_libraries() -> None:
    """Raise ConfigurationError if the libraries of ONNX are not installed."""
    for name in ("tf2onnx", "onnxruntime"):
        _library(name)


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"--onnx needs libraries that are not installed ({error}): pip install 'relaax[export]'"
        ) from error
