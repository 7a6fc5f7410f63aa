"""A network of the learning library, written a second time in numpy, in float64."""

import numpy as np

#: From their definitions, which overflow for inputs that no test has.
ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.exp(x) - 1),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
sigmoid = ACTIVATIONS["sigmoid"]


def convolve(images, kernel, stride, padding="valid"):
    """A convolution, window by window; images [B, H, W, C], kernel [K, K, C, F]."""
    size = kernel.shape[0]
    if padding == "same":
        images = surrounded(images, size, stride)
    rows = (images.shape[1] - size) // stride + 1
    columns = (images.shape[2] - size) // stride + 1
    output = np.zeros((images.shape[0], rows, columns, kernel.shape[3]))
    for row in range(rows):
        for column in range(columns):
            top, left = row * stride, column * stride
            window = images[:, top : top + size, left : left + size, :]
            output[:, row, column] = np.tensordot(window, kernel, axes=3)
    return output


def spread(images, kernel, stride, padding="valid"):
    """A transposed convolution, place by place; images [B, H, W, C], kernel [K, K, C, F]."""
    size, (count, height, width, _) = kernel.shape[0], images.shape
    shape = ((height - 1) * stride + size, (width - 1) * stride + size)
    largest = (max(shape[0], height * stride), max(shape[1], width * stride))
    output = np.zeros((count, *largest, kernel.shape[3]))
    for row in range(height):
        for column in range(width):
            top, left = row * stride, column * stride
            places = np.tensordot(images[:, row, column], kernel, axes=(1, 2))
            output[:, top : top + size, left : left + size] += places
    if padding == "valid":
        return output[:, : shape[0], : shape[1]]
    cut = max(size - stride, 0) // 2
    return output[:, cut : cut + height * stride, cut : cut + width * stride]


def surrounded(images, size, stride):
    """Images with so many zeros around them that only the stride makes them smaller."""
    around = [(0, 0)]
    for length in images.shape[1:3]:
        missing = max((-(-length // stride) - 1) * stride + size - length, 0)
        around.append((missing // 2, missing - missing // 2))
    return np.pad(images, [*around, (0, 0)])


class NumpyNetwork:
    """What each head puts out for the consecutive steps of one environment."""

    def __init__(self, network, tensors):
        self.network = network
        self.weights = {name: np.asarray(value, np.float64) for name, value in tensors.items()}

    def forward(self, observations, state, continues):
        """Return the heads' outputs [T, outputs] by name, and the recurrent state after them."""
        if not isinstance(observations, dict):
            observations = {"": observations}
        counts = {}
        encoded = {
            name: self.encode(name, observations[name], counts if name == "" else {})
            for name in sorted(self.network.encoders)
            if any(head.sees is None or name in head.sees for head in self.network.heads)
        }
        shared = [
            name
            for name in encoded
            if all(head.sees is None or name in head.sees for head in self.network.heads)
        ]
        count = len(next(iter(encoded.values())))
        hidden = np.concatenate([np.zeros((count, 0)), *(encoded[name] for name in shared)], axis=1)
        for layer in self.network.layers:
            if layer.kind == "lstm":
                hidden, state = self.recur(hidden, state, continues)
            else:
                hidden = self.layer(layer, hidden, "", counts)
        outputs = {}
        for head in self.network.heads:
            beside = [
                encoded[name]
                for name in encoded
                if name not in shared and (head.sees is None or name in head.sees)
            ]
            outputs[head.name] = self.head(head, np.concatenate([hidden, *beside], axis=1))
        return outputs, state

    def encode(self, name, observations, counts):
        hidden = np.asarray(observations, np.float64)
        if observations.dtype == np.uint8:
            hidden = hidden / 255
        for layer in self.network.encoders[name].layers:
            hidden = self.layer(layer, hidden, f"{name}/" if name else "", counts)
        return hidden.reshape(len(hidden), -1)

    def layer(self, layer, hidden, prefix, counts):
        if layer.kind == "reshape":
            return hidden.reshape(len(hidden), *layer.shape)
        stems = {
            "conv2d": "conv",
            "conv2d_transpose": "deconv",
            "layer_norm": "norm",
            "shared_dense": "shared",
        }
        stem = stems.get(layer.kind, layer.kind)
        name = f"{prefix}{stem}{counts.get(stem, 0)}"
        counts[stem] = counts.get(stem, 0) + 1
        if layer.kind == "conv2d":
            kernel, bias = self.weights[f"{name}/kernel"], self.weights[f"{name}/bias"]
            hidden = convolve(hidden, kernel, layer.stride, layer.padding) + bias
        elif layer.kind == "conv2d_transpose":
            kernel, bias = self.weights[f"{name}/kernel"], self.weights[f"{name}/bias"]
            hidden = spread(hidden, kernel, layer.stride, layer.padding) + bias
        elif layer.kind == "shared_dense":
            hidden = self.shared_dense(hidden.reshape(len(hidden), -1), name, layer.parts)
        elif layer.kind == "dense":
            hidden = self.dense(hidden.reshape(len(hidden), -1), name)
        else:
            mean, variance = hidden.mean(axis=-1), hidden.var(axis=-1)
            hidden = (hidden - mean[..., None]) / np.sqrt(variance + 1e-5)[..., None]
            hidden = hidden * self.weights[f"{name}/scale"] + self.weights[f"{name}/offset"]
        return ACTIVATIONS[layer.activation](hidden)

    def head(self, head, hidden):
        counts = {}
        for layer in head.layers:
            hidden = self.layer(layer, hidden, f"{head.name}/", counts)
        hidden = hidden.reshape(len(hidden), -1)
        parts = [self.dense(hidden, head.name) if head.is_linear else hidden] if head.units else []
        if head.free_units:
            parts.append(np.tile(self.weights[f"{head.name}/free"], (len(hidden), 1)))
        return np.concatenate(parts, axis=1)

    def dense(self, inputs, name):
        return inputs @ self.weights[f"{name}/kernel"] + self.weights[f"{name}/bias"]

    def shared_dense(self, inputs, name, parts):
        """Part by part; a bias of its own is what the one-hot vector of its number adds."""
        kernel, bias = self.weights[f"{name}/kernel"], self.weights[f"{name}/bias"]
        one_hot = np.eye(parts)
        return np.concatenate(
            [
                part @ kernel + (one_hot[number] @ bias if bias.ndim > 1 else bias)
                for number, part in enumerate(np.split(inputs, parts, axis=1))
            ],
            axis=1,
        )

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
