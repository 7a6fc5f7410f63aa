"""DA3C's network as pure functions of parameters and a batch, in TensorFlow."""

from .model import Decision, Gradients, Model, Parameters, padded_size

__all__ = ["Decision", "Gradients", "Model", "Parameters", "padded_size"]
