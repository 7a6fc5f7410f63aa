"""Initial parameters of the network."""

import numpy as np
import pytest
from numpy_network import ACTIVATIONS

from relaax.learning.networks import (
    LSTM,
    Convolution,
    Dense,
    Head,
    LayerNorm,
    Network,
    initial_parameters,
)
from relaax.learning.networks.layers import GAINS

NETWORK = Network.of(
    (28, 36, 1),
    (Convolution(16, 8, 4), Convolution(32, 4, 2), Dense(5), LSTM(4)),
    (Head("policy", 3), Head("value", 1)),
)


def draw(initialization, seed=3):
    vector = initial_parameters(NETWORK.manifest, initialization, seed)
    assert vector.dtype == np.float32
    return vector, NETWORK.manifest.unpack(vector)


@pytest.mark.parametrize("initialization", ["uniform", "orthogonal"])
def test_the_seed_decides(initialization):
    assert np.array_equal(draw(initialization)[0], draw(initialization)[0])
    assert not np.array_equal(draw(initialization)[0], draw(initialization, seed=4)[0])


def test_uniform_values_stay_in_the_range_that_the_inputs_set():
    _, tensors = draw("uniform")
    kernel = tensors["conv0/kernel"]  # 8 x 8 inputs of one channel
    assert 0.12 < np.abs(kernel).max() <= 1 / 8
    assert np.abs(tensors["conv0/bias"]).max() <= 1 / 8


@pytest.mark.parametrize(
    ("name", "gain"), [("conv1", 2**0.5), ("dense0", 2**0.5), ("policy", 0.01), ("value", 1.0)]
)
def test_orthogonal_columns_have_one_length_and_no_angle_but_the_right_one(name, gain):
    _, tensors = draw("orthogonal")
    kernel = tensors[f"{name}/kernel"].reshape(-1, tensors[f"{name}/kernel"].shape[-1])
    products = kernel.T @ kernel
    np.testing.assert_allclose(products, gain**2 * np.eye(len(products)), atol=1e-5)
    assert not tensors[f"{name}/bias"].any()


def test_where_units_outnumber_inputs_the_rows_are_orthogonal():
    _, tensors = draw("orthogonal")
    kernel = tensors["lstm/kernel"]  # 5 + 4 inputs, 4 gates of 4 cells
    np.testing.assert_allclose(kernel @ kernel.T, np.eye(9), atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "tanh", "elu", "silu", "swish"])
def test_a_gain_keeps_the_mean_square_of_signals(activation):
    """By the trapezoidal rule over a normal input, multiplied with the gain after."""
    z = np.linspace(-10, 10, 20_001)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    mean_square = np.trapezoid(ACTIVATIONS[activation](z) ** 2 * density, z)
    assert GAINS[activation] ** 2 * mean_square == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("initialization", ["uniform", "orthogonal"])
def test_scales_offsets_and_free_outputs_start_where_they_say(initialization):
    heads = (Head("policy", 2, free_units=2, free_start=-0.5),)
    network = Network.of((3,), (LayerNorm(), Dense(4, "tanh")), heads)
    vector = initial_parameters(network.manifest, initialization, 3)
    tensors = network.manifest.unpack(vector)
    assert tensors["norm0/scale"].tolist() == [1, 1, 1]
    assert tensors["norm0/offset"].tolist() == [0, 0, 0]
    assert tensors["policy/free"].tolist() == [-0.5, -0.5]


def test_each_layer_has_the_gain_that_its_activation_asks_for():
    network = Network.of((9,), (Dense(4, "tanh"), Dense(4, "linear")), (Head("policy", 2),))
    gains = {spec.name: spec.gain for spec in network.manifest.specs if "kernel" in spec.name}
    assert gains == {"dense0/kernel": GAINS["tanh"], "dense1/kernel": 1.0, "policy/kernel": 0.01}
