"""The TensorFlow counterpart of each distribution."""

from typing import cast

from relaax.learning.distributions.action_values import ActionValues, ValuesOfChoices
from relaax.learning.distributions.base import (
    ActionHead,
    Distribution,
    GraphActionHead,
    GraphDistribution,
)
from relaax.learning.distributions.bernoulli import Bernoulli
from relaax.learning.distributions.categorical import Categorical
from relaax.learning.distributions.categorical_tf import (
    GraphActionValues,
    GraphBernoulli,
    GraphCategorical,
    GraphMultiDiscrete,
    GraphValuesOfChoices,
)
from relaax.learning.distributions.deterministic import Deterministic
from relaax.learning.distributions.gaussian import DiagonalGaussian
from relaax.learning.distributions.gaussian_tf import GraphDeterministic, GraphDiagonalGaussian
from relaax.learning.distributions.multi_discrete import MultiDiscrete
from relaax.learning.distributions.squashed_gaussian import SquashedGaussian
from relaax.learning.distributions.squashed_gaussian_tf import GraphSquashedGaussian


def graph_head_of(head: ActionHead) -> GraphActionHead:
    """Return ``head`` as it is inside a graph; ValueError for one of another library."""
    match head:
        case Deterministic():
            return GraphDeterministic(head)
        case ActionValues():
            return GraphActionValues(head)
        case ValuesOfChoices():
            return GraphValuesOfChoices(head)
    return graph_of(cast(Distribution, head))


def graph_of(distribution: Distribution) -> GraphDistribution:
    """Return ``distribution`` as it is inside a graph; ValueError for one of another library."""
    match distribution:
        case Categorical():
            return GraphCategorical()
        case MultiDiscrete():
            return GraphMultiDiscrete(distribution)
        case Bernoulli():
            return GraphBernoulli(distribution)
        case DiagonalGaussian():
            return GraphDiagonalGaussian(distribution)
        case SquashedGaussian():
            return GraphSquashedGaussian(distribution)
    raise ValueError(
        f"{type(distribution).__name__} has no TensorFlow counterpart in relaax.learning: write a "
        "GraphDistribution for it, and pass that on instead of calling graph_of"
    )
