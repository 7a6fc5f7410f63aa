"""Arrays as tensors: shared where TensorFlow can use them where they lie, else copied once."""

import numpy as np
import pytest
import tensorflow as tf

from relaax.learning.arrays import ALIGNMENT_BYTES, aligned_empty, padded_batch
from relaax.learning.networks.compiled_tf import CompiledFunction, tensor_of
from relaax.learning.networks.manifest import NetworkParameters
from relaax.replay.array_bytes import address_of


def is_shared(array, tensor):
    array[...] = 7
    return bool((tensor.numpy() == 7).all())


def test_an_aligned_array_is_shared():
    array = aligned_empty((3, 5), np.float32)
    array[...] = 1
    assert address_of(array) % ALIGNMENT_BYTES == 0
    assert is_shared(array, tensor_of(array))


@pytest.mark.parametrize("kind", ["misplaced", "strided", "read-only"])
def test_every_other_array_is_copied(kind):
    array = aligned_empty((4, 6), np.uint8)
    array[...] = 3
    view = {"misplaced": array[1:], "strided": array[:, ::2], "read-only": array[:]}[kind]
    view.flags.writeable = kind != "read-only"
    tensor = tensor_of(view)
    assert tensor.shape == view.shape
    assert not is_shared(array, tensor)
    assert (tensor.numpy() == 3).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int32, np.int64])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3, 0), (1,), (2, 3, 4)])
def test_values_types_and_shapes_are_kept(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    tensor = tensor_of(array)
    assert tensor.dtype.as_numpy_dtype == dtype
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_empty_arrays_of_each_shape_and_type_reach_the_graph():
    """Their tensors are kept: a network without recurrent layers is given one at each call."""
    function = CompiledFunction(lambda parameters, array: tf.shape(array), jit_compile=False)
    for _ in range(2):
        for shape in ((2, 3, 0), (2, 4, 0), (0,)):
            for dtype in (np.float32, np.int32):
                assert function((), np.zeros(shape, dtype)).numpy().tolist() == list(shape)


def test_a_padded_batch_is_aligned_and_ends_in_zeros():
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    padded = padded_batch(array, 4)
    assert padded.tolist() == [[0, 1], [2, 3], [4, 5], [0, 0]]
    assert address_of(padded) % ALIGNMENT_BYTES == 0
    assert padded_batch(array, 3) is array


def test_tensors_of_parameters_are_made_once_and_when_they_are_used():
    """What chooses with numpy alone makes none."""
    made = []

    def make():
        made.append(tf.zeros(3))
        return tuple(made)

    parameters = NetworkParameters({"bias": np.zeros(3, np.float32)}, make)
    assert parameters.arrays["bias"].tolist() == [0, 0, 0]
    assert not made
    assert parameters.tensors is parameters.tensors
    assert len(made) == 1
