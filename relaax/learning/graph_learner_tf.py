"""A learner that sets values itself: its whole update is one graph over rollouts."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from relaax.algorithm_base import FloatVector, Input, LearnerBase, Step
from relaax.learning.gradients_tf import GraphRollouts, Terms
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.off_policy.variables_tf import Variables
from relaax.learning.rollouts import RolloutBatch
from relaax.learning.steps import rollouts_in

Array = npt.NDArray[Any]


class GraphLearner(LearnerBase):
    """Derive from it, and change ``variables`` in ``update``.

    The tables of ``inputs`` have the view ``Rollouts``. Actors act with the variable
    ``POLICY_VARIABLE``; all variables are in checkpoints.
    """

    def __init__(self, variables: Variables, inputs: Mapping[str, Input]) -> None:
        self.variables = variables
        self.inputs = {
            table: replace(each, prepare=lambda sample: rollouts_in(sample.columns))
            for table, each in inputs.items()
        }
        self._graph = tf.function(self._update, autograph=False)

    @abstractmethod
    def update(self, *batches: GraphRollouts) -> Terms:
        """Change the variables by a batch of each input, in their order, inside a graph.

        Return numbers to be shown by name.
        """

    def step(self, batches: Mapping[str, RolloutBatch]) -> Step:
        """See LearnerBase."""
        terms = self._graph(*(tuple(batches[table].columns()) for table in self.inputs))
        return Step(terms={name: float(term) for name, term in terms.items()})

    def parameters(self) -> FloatVector:
        """See LearnerBase."""
        vector: FloatVector = self.variables[POLICY_VARIABLE].numpy()
        return vector

    def state(self) -> Mapping[str, Array]:
        """See LearnerBase."""
        return self.variables.state()

    def restore(self, state: Mapping[str, Array]) -> None:
        """See LearnerBase."""
        self.variables.restore(state)

    def _update(self, *batches: tuple[Any, ...]) -> Terms:
        return self.update(*(GraphRollouts(*columns) for columns in batches))
