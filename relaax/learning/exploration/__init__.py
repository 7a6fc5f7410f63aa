"""What makes the actors of an algorithm try other actions than the best known ones.

``noise``           what every source of noise does, and what makes none
``action_noise``    noise on continuous actions: normal, or correlated in time
``parameter_noise`` noise on a policy's parameters
``epsilon_greedy``  now and then one of several actions, whatever is known of it
"""

from .noise import NoiseSource, NoNoise

__all__ = ["NoNoise", "NoiseSource"]
