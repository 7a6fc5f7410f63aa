"""A learner that sets values itself: its whole update is one graph over rollouts."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import DEFAULT, FloatVector, Input, Learner, Step
from relaax.learning.gradients_tf import GraphRollouts, Terms
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.rollouts import RolloutBatch
from relaax.learning.variables_tf import Variables

Array = npt.NDArray[Any]


class GraphLearner(Learner):
    """Derive from it, and change ``variables`` in ``update``.

    Each of the ``inputs`` prepares rollouts, as ``rollouts_of`` does. Actors act with the variable
    ``POLICY_VARIABLE``; all variables are in checkpoints.
    """

    def __init__(self, variables: Variables, inputs: Mapping[str, Input]) -> None:
        self.variables = variables
        self.inputs = inputs
        self._graph = tf.function(self._update, autograph=False)

    @abstractmethod
    def update(self, *batches: GraphRollouts) -> tuple[Terms, Mapping[str, tf.Tensor]]:
        """Change the variables by a batch of each input, in their order, inside a graph.

        Return numbers to be shown by name, and priorities [K] of rollouts, by their table; ``{}``
        where the tables have none.
        """

    def steps(self, batches: Mapping[str, RolloutBatch]) -> Iterator[Step]:
        """See Learner."""
        terms, priorities = self._graph(*(tuple(batches[name].columns()) for name in self.inputs))
        yield Step(
            priorities={table: found.numpy().astype(float) for table, found in priorities.items()},
            terms={name: float(term) for name, term in terms.items()},
        )

    def values(self) -> Mapping[str, FloatVector]:
        """See Learner."""
        return {DEFAULT: self.variables[POLICY_VARIABLE].numpy()}

    def state(self) -> Mapping[str, Array]:
        """See Learner."""
        return self.variables.state()

    def restore(self, state: Mapping[str, Array]) -> None:
        """See Learner."""
        self.variables.restore(state)

    def _update(self, *batches: tuple[Any, ...]) -> tuple[Terms, Mapping[str, tf.Tensor]]:
        return self.update(*(GraphRollouts(*columns) for columns in batches))
