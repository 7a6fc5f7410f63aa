"""Continuous actions, each with a normal distribution of its own."""

import numpy as np


class DiagonalGaussian:
    """The network puts out a mean and the logarithm of a standard deviation for each action."""

    action_dtype = np.float32

    def __init__(self, actions: int) -> None:
        self.outputs = 2 * actions
        self.action_shape = (actions,)

    def noise(self, random, count):
        return random.standard_normal((count, *self.action_shape), np.float32)

    def choose(self, outputs, noise):
        mean, log_sigma = np.split(outputs, 2, axis=-1)
        return mean + np.exp(log_sigma) * noise

    def log_likelihood(self, outputs, actions):
        """Return the actions' log-likelihoods."""
        mean, log_sigma = np.split(outputs, 2, axis=-1)
        squares = np.square((actions - mean) * np.exp(-log_sigma))
        return -(0.5 * squares + log_sigma + 0.5 * np.log(2 * np.pi)).sum(axis=-1)
