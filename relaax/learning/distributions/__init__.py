"""How actions are drawn from what a network puts out.

``base``            what a distribution is asked, in numpy and inside a TensorFlow graph
``categorical``     one of several actions, in numpy
``categorical_tf``  the same inside a graph
"""

from relaax.learning.distributions.base import Distribution, GraphDistribution
from relaax.learning.distributions.categorical import Categorical

__all__ = ["Categorical", "Distribution", "GraphDistribution"]
