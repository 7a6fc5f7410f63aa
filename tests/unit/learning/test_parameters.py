"""Flat parameters: packing, the optimiser's formula, and sharing between threads."""

import threading

import numpy as np
import pytest

from relaax.errors import ConfigurationError
from relaax.learning.networks import ParameterManifest, TensorSpec
from relaax.parameters.optimizers import RMSProp
from relaax.parameters.optimizers.sections import RMSPropSettings
from relaax.parameters.parameter_store import ParameterStore

MANIFEST = ParameterManifest((TensorSpec("kernel", (2, 3), 2), TensorSpec("bias", (3,), 2)))


def test_tensors_survive_packing_and_unpacking():
    vector = np.arange(9, dtype=np.float32)
    tensors = MANIFEST.unpack(vector)
    assert tensors["kernel"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tensors["bias"].tolist() == [6, 7, 8]
    assert MANIFEST.pack(tensors).tolist() == vector.tolist()


def test_a_vector_of_another_network_is_refused_with_both_sizes():
    with pytest.raises(ConfigurationError, match=r"has 9 parameters, the vector \(8,\)"):
        MANIFEST.unpack(np.zeros(8, np.float32))


def test_rmsprop_takes_the_step_of_the_paper():
    """Two steps on two parameters, worked in float64 from equation (1) of Mnih et al. 2016."""
    parameters = np.array([1.0, -2.0], np.float32)
    optimizer = RMSProp(2, RMSPropSettings(decay=0.9, epsilon=0.01))
    expected, mean_square = np.array([1.0, -2.0]), np.zeros(2)
    for gradient, rate in ((np.array([0.5, -3.0]), 0.1), (np.array([-1.0, 0.25]), 0.05)):
        optimizer.apply(parameters, gradient.astype(np.float32), rate)
        mean_square = 0.9 * mean_square + 0.1 * gradient**2
        expected = expected - rate * gradient / np.sqrt(mean_square + 0.01)
    np.testing.assert_allclose(parameters, expected, rtol=1e-6)
    np.testing.assert_allclose(optimizer.mean_square, mean_square, rtol=1e-6)


def test_rmsprop_by_hand():
    """g = 0.75 * 0 + 0.25 * 2**2 = 1; the step is 0.5 * 2 / sqrt(1 + 3) = 0.5."""
    parameters = np.array([10.0], np.float32)
    RMSProp(1, RMSPropSettings(0.75, 3.0)).apply(parameters, np.array([2.0], np.float32), 0.5)
    assert parameters.tolist() == [9.5]


def _store(size: int, decay: float = 0.5) -> ParameterStore:
    optimizer = RMSProp(size, RMSPropSettings(decay, 1.0))
    return ParameterStore(np.zeros(size, np.float32), optimizer, lambda global_t: 0.125)


def _trajectory(size: int, updates: int) -> list[np.ndarray]:
    """The parameters at every version, applied one after the other."""
    store, gradient = _store(size), np.ones(size, np.float32)
    states = [store.pull().vector]
    for _ in range(updates):
        store.apply(gradient, 1)
        states.append(store.pull().vector)
    return states


def test_many_threads_lose_no_update_and_readers_see_whole_ones():
    size, threads, updates_each = 5_000, 16, 40
    trajectory = _trajectory(size, threads * updates_each)
    store, gradient = _store(size), np.ones(size, np.float32)
    torn: list[int] = []
    done = threading.Event()

    def write() -> None:
        for _ in range(updates_each):
            store.apply(gradient, 3)

    def read() -> None:
        while not done.is_set():
            values = store.pull()
            version = values.version.number
            is_whole = np.array_equal(values.vector, trajectory[version])
            if values.global_t != 3 * version or not is_whole:
                torn.append(version)

    readers = [threading.Thread(target=read) for _ in range(4)]
    writers = [threading.Thread(target=write) for _ in range(threads)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    values = store.pull()
    assert torn == []
    assert values.version.number == threads * updates_each
    assert values.global_t == 3 * threads * updates_each
    np.testing.assert_array_equal(values.vector, trajectory[-1])


def test_what_was_read_does_not_change_with_later_updates():
    store = _store(3)
    before = store.pull().vector
    store.apply(np.ones(3, np.float32), 1)
    assert before.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 1


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_changes_nothing(poison: float):
    store = _store(2)
    with pytest.raises(ValueError, match="not finite"):
        store.apply(np.array([1, poison], np.float32), 1)
    assert store.pull().vector.tolist() == [0, 0]
    assert (store.version, store.global_t) == (0, 0)


def test_a_gradient_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"shape \(3,\), the parameters \(2,\)"):
        _store(2).apply(np.ones(3, np.float32), 1)


def test_a_restored_store_goes_on_as_the_one_before_would_have():
    size, gradient = 4, np.arange(4, dtype=np.float32)
    first, second = _store(size), _store(size)
    for _ in range(3):
        first.apply(gradient, 2)
    second.restore(first.snapshot())
    for store in (first, second):
        store.apply(gradient, 2)
    np.testing.assert_array_equal(first.pull().vector, second.pull().vector)
    assert first.version == second.version == 4
    assert first.global_t == second.global_t == 8


def test_a_frozen_store_changes_no_more():
    store = _store(2)
    store.apply(np.ones(2, np.float32), 5)
    before = store.pull().vector
    store.freeze()
    store.apply(np.ones(2, np.float32), 5)
    assert store.add(3) == 5
    np.testing.assert_array_equal(store.pull().vector, before)
