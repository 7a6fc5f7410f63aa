"""A network of the learning library, written a second time in numpy, in float64."""

import numpy as np


def relu(x):
    return np.maximum(x, 0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def convolve(images, kernel, stride):
    """A valid convolution, window by window; images [B, H, W, C], kernel [K, K, C, F]."""
    size = kernel.shape[0]
    rows = (images.shape[1] - size) // stride + 1
    columns = (images.shape[2] - size) // stride + 1
    output = np.zeros((images.shape[0], rows, columns, kernel.shape[3]))
    for row in range(rows):
        for column in range(columns):
            top, left = row * stride, column * stride
            window = images[:, top : top + size, left : left + size, :]
            output[:, row, column] = np.tensordot(window, kernel, axes=3)
    return output


class NumpyNetwork:
    """What each head puts out for the consecutive steps of one environment."""

    def __init__(self, network, tensors):
        self.network = network
        self.weights = {name: np.asarray(value, np.float64) for name, value in tensors.items()}

    def forward(self, observations, state, continues):
        """Return the heads' outputs [T, units] by name, and the recurrent state after them."""
        hidden = np.asarray(observations, np.float64)
        if observations.dtype == np.uint8:
            hidden = hidden / 255
        for index, layer in enumerate(self.network.convolutions):
            bias = self.weights[f"conv{index}/bias"]
            hidden = relu(
                convolve(hidden, self.weights[f"conv{index}/kernel"], layer.stride) + bias
            )
        hidden = hidden.reshape(len(hidden), -1)
        for index in range(len(self.network.dense_units)):
            hidden = relu(self.dense(hidden, f"dense{index}"))
        if self.network.lstm_size:
            hidden, state = self.recur(hidden, state, continues)
        return {head.name: self.dense(hidden, head.name) for head in self.network.heads}, state

    def dense(self, inputs, name):
        return inputs @ self.weights[f"{name}/kernel"] + self.weights[f"{name}/bias"]

    def recur(self, inputs, state, continues):
        (cell,), (output,) = np.asarray(state, np.float64)
        outputs = []
        for row, goes_on in zip(inputs, continues, strict=True):
            cell, output = cell * goes_on, output * goes_on
            gates = self.dense(np.concatenate([row, output]), "lstm")
            admit, candidate, forget, expose = np.split(gates, 4)
            cell = sigmoid(forget + 1.0) * cell + sigmoid(admit) * np.tanh(candidate)
            output = sigmoid(expose) * np.tanh(cell)
            outputs.append(output)
        return np.array(outputs), np.array([[cell], [output]])
