"""How actions are drawn from a network's outputs.

``base``                  the questions to a distribution, in numpy and inside a TensorFlow graph
``of_space``              which distribution actions of a space have
``graph_tf``              the TensorFlow counterpart of each distribution

``categorical``           one of several actions, in numpy
``categorical_tf``        the same, and the next two and ``action_values``, inside a graph
``multi_discrete``        several choices at once, in numpy
``bernoulli``             bits, in numpy
``gaussian``              continuous actions without bounds, in numpy
``gaussian_tf``           the same, and ``deterministic``, inside a graph
``squashed_gaussian``     continuous actions between -1 and 1, in numpy
``squashed_gaussian_tf``  the same inside a graph
``deterministic``         a continuous action for each state, in numpy
``action_values``         the action of the highest value, or of each choice, in numpy
"""

from relaax.learning.distributions.action_values import ActionValues, ValuesOfChoices
from relaax.learning.distributions.base import (
    ActionHead,
    Distribution,
    GraphActionHead,
    GraphDistribution,
    Maskable,
)
from relaax.learning.distributions.bernoulli import Bernoulli
from relaax.learning.distributions.categorical import Categorical
from relaax.learning.distributions.deterministic import Deterministic
from relaax.learning.distributions.gaussian import DiagonalGaussian
from relaax.learning.distributions.multi_discrete import MultiDiscrete
from relaax.learning.distributions.of_space import distribution_of
from relaax.learning.distributions.squashed_gaussian import SquashedGaussian

__all__ = [
    "ActionHead", "ActionValues", "Bernoulli", "Categorical", "Deterministic", "DiagonalGaussian",
    "Distribution", "GraphActionHead", "GraphDistribution", "Maskable", "MultiDiscrete",
    "SquashedGaussian", "ValuesOfChoices", "distribution_of"
]  # fmt: skip
