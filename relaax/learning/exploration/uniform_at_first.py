"""Actions drawn evenly at first, for continuous ones between bounds."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from relaax.learning.exploration.schedules import Clock
from relaax.learning.model import Choice, PolicyModel
from relaax.learning.networks.parameters import Parameters
from relaax.observations import Observations

FloatArray = npt.NDArray[np.float32]


class UniformAtFirst:
    """Chooses evenly between ``low`` and ``high`` until the global step is ``steps``.

    After that it is ``model`` that chooses. The bounds have the action's shape. It stands around
    the model, so that it fits whatever the model makes actions of, and leaves evaluations alone,
    which choose with the model itself.
    """

    def __init__(
        self,
        model: PolicyModel,
        low: FloatArray,
        high: FloatArray,
        steps: int,
        global_t: Clock,
        random: np.random.Generator,
    ) -> None:
        self._model = model
        self._low = low
        self._high = high
        self._steps = steps
        self._global_t = global_t
        self._random = random

    def batch_size(self, count: int) -> int:
        """See PolicyModel."""
        return self._model.batch_size(count)

    def choose(
        self,
        parameters: Parameters,
        observations: Observations,
        recurrent_state: FloatArray,
        noise: FloatArray,
    ) -> Choice:
        """See PolicyModel. The likelihoods are those of what the model would have done."""
        choice = self._model.choose(parameters, observations, recurrent_state, noise)
        if self._global_t() >= self._steps:
            return choice
        drawn = self._random.uniform(self._low, self._high, choice.actions.shape)
        return replace(choice, actions=drawn.astype(np.float32))
