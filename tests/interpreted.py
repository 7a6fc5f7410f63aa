"""Networks without graphs: making one takes longer than all that most tests compute with it."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from relaax.learning.tensorflow_runtime_tf import import_tensorflow

import_tensorflow()  # before the modules of tests do, and without Keras, which few need

#: What is called more often gets its graph: then that is faster.
CALLS_WITHOUT_A_GRAPH = 100


@pytest.fixture(autouse=True)
def interpreted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let TensorFlow do one operation of networks and gradients after the other, and without XLA.

    Tests that are marked ``xla`` compute with what the servers compute with.
    """
    if request.node.get_closest_marker("xla") is not None:
        return
    import tensorflow as tf

    from relaax.learning.networks.compiled_tf import CompiledFunction, tensor_of

    calls: Counter[tuple[CompiledFunction, Any]] = Counter()
    make: Callable[..., Any] = CompiledFunction.__init__
    call_graph: Callable[..., Any] = CompiledFunction.__call__
    functions = {}

    def interpret(self: CompiledFunction, function: Callable[..., Any], jit_compile: bool) -> None:
        make(self, function, jit_compile=False)
        functions[self] = function

    def call(self: CompiledFunction, parameters: Sequence[tf.Tensor], *arguments: Any) -> Any:
        shapes = tuple(array.shape for array in tf.nest.flatten(arguments))
        calls[self, shapes] += 1
        if calls[self, shapes] > CALLS_WITHOUT_A_GRAPH:
            return call_graph(self, parameters, *arguments)
        return functions[self](parameters, *tf.nest.map_structure(tensor_of, arguments))

    monkeypatch.setattr(CompiledFunction, "__init__", interpret)
    monkeypatch.setattr(CompiledFunction, "__call__", call)
