"""Exploration: actors try other actions than the best known ones.

``noise``           the role of a source of noise, and a source without any
``action_noise``    noise on continuous actions: normal, or correlated in time
``parameter_noise`` noise on a policy's parameters
``ladder``          sizes of noise that differ from environment to environment
``epsilon_greedy``  now and then one of several actions, whatever is known of it
"""

from .noise import NoiseSource, NoNoise

__all__ = ["NoNoise", "NoiseSource"]
