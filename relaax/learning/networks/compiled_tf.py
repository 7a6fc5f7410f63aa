"""Calls a graph without TensorFlow's signature matching."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from relaax.learning.arrays import ALIGNMENT_BYTES, aligned_empty
from relaax.observations import Observations
from relaax.replay.array_bytes import address_of


class CompiledFunction:
    """A function of parameters and numpy arrays, traced once for each shape and type of these.

    ``tf.function`` matches every argument against its traces on each call, and a concrete function
    still binds them to its signature: that takes longer than a small network itself
    (``benchmarks/inference.py``). Here the flat tensors go straight to the graph.
    """

    def __init__(self, function: Callable[..., Any], jit_compile: bool) -> None:
        # Without autograph, which writes a temporary file for each function and process and
        # leaves it there: nothing here has control flow to be rewritten.
        self._function = tf.function(function, jit_compile=jit_compile, autograph=False)
        self._traces: dict[tuple[Any, ...], Any] = {}
        #: By shape and type. A network without recurrent layers is given one at each call.
        self._empty_tensors: dict[tuple[Any, ...], tf.Tensor] = {}

    def __call__(self, parameters: Sequence[tf.Tensor], *arguments: Observations) -> Any:
        """Return the function's results as tensors; an argument may be arrays by name."""
        arrays = _flattened(arguments)
        tensors = [tensor_of(array) if array.size else self._empty(array) for array in arrays]
        key = tuple((array.shape, array.dtype) for array in arrays)
        trace = self._traces.get(key)
        if trace is None:
            structured = tf.nest.pack_sequence_as(arguments, tensors)
            trace = self._function.get_concrete_function(parameters, *structured)
            self._traces[key] = trace
        flat = [*parameters, *tensors, *trace.captured_inputs]
        return trace.inference_fn.call_preflattened(flat)

    @property
    def graphs(self) -> int:
        """How many were traced."""
        return len(self._traces)

    def _empty(self, array: npt.NDArray[Any]) -> tf.Tensor:
        """Return the tensor of an array without elements, which is made once."""
        key = array.shape, array.dtype
        if key not in self._empty_tensors:
            self._empty_tensors[key] = tf.constant(array)
        return self._empty_tensors[key]


def _flattened(arguments: Sequence[Observations]) -> list[npt.NDArray[Any]]:
    """Return all arrays; the arrays of a dict are sorted by name, as TensorFlow sorts them."""
    arrays = []
    for argument in arguments:
        if isinstance(argument, dict):
            arrays += [argument[name] for name in sorted(argument)]
        else:
            arrays.append(argument)
    return arrays


def tensor_of(array: npt.NDArray[Any]) -> tf.Tensor:
    """Return a tensor with the memory of ``array``, which must not be changed while it is used.

    An array that is not aligned, not contiguous or read-only is copied, once.
    ``tf.constant`` copies every array, and one that is not aligned twice.
    """
    if array.size == 0:
        return tf.constant(array)
    flags = array.flags
    if not (flags.c_contiguous and flags.writeable) or address_of(array) % ALIGNMENT_BYTES:
        aligned = aligned_empty(array.shape, array.dtype)
        aligned[...] = array
        array = aligned
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())
