"""Noise on the parameters of a policy, so that it tries the same in the same state for a while."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector
from relaax.learning.model import Choice, PolicyModel
from relaax.learning.networks.manifest import NetworkParameters
from relaax.observations import Observations

FloatArray = npt.NDArray[np.float32]

#: What the deviation is multiplied with, or divided by; Plappert et al. 2018, appendix C.
_FACTOR = 1.01

#: Choices between two looks at how far the noise leads.
_CHOICES = 50


class ParameterNoise:
    """Perturbs the policy each time that new parameters come, and chooses with the perturbed one.

    Plappert et al. 2018 (https://arxiv.org/abs/1706.01905). ``sigma`` is the deviation of the noise
    on each parameter. With a ``target`` it is the first one, and changes slowly so that actions are
    at this root mean square distance from those without noise: equations (6) and following.

    ``unpack`` and ``choose`` are called by different threads.
    """

    def __init__(
        self,
        unpack: Callable[[FloatVector], NetworkParameters],
        model: PolicyModel,
        sigma: float,
        random: np.random.Generator,
        target: float | None = None,
    ) -> None:
        self._unpack = unpack
        self._model = model
        self.sigma = sigma
        self._random = random
        self._target = target
        #: Parameters with noise, and the same without.
        self._pair: tuple[NetworkParameters, NetworkParameters] | None = None
        self._choices = 0

    def unpack(self, vector: FloatVector) -> NetworkParameters:
        """Return the parameters ``vector`` [size] with noise."""
        noise = self._random.standard_normal(len(vector), np.float32)
        noisy = self._unpack(vector + np.float32(self.sigma) * noise)
        self._pair = noisy, self._unpack(vector)
        return noisy

    def batch_size(self, count: int) -> int:
        """See PolicyModel."""
        return self._model.batch_size(count)

    def choose(
        self,
        parameters: NetworkParameters,
        observations: Observations,
        recurrent_state: FloatArray,
        noise: FloatArray,
    ) -> Choice:
        """See PolicyModel."""
        self._choices += 1
        if self._target is not None and self._choices % _CHOICES == 0:
            self._adapt(self._target, parameters, observations, recurrent_state, noise)
        return self._model.choose(parameters, observations, recurrent_state, noise)

    def _adapt(
        self,
        target: float,
        parameters: NetworkParameters,
        observations: Observations,
        recurrent_state: FloatArray,
        noise: FloatArray,
    ) -> None:
        """Let sigma grow where the noise leads less far than it should, and shrink otherwise."""
        pair = self._pair
        if pair is None or pair[0] is not parameters:  # newer ones have just come
            return
        quiet = np.zeros_like(noise)
        with_noise, without = (
            self._model.choose(each, observations, recurrent_state, quiet).actions for each in pair
        )
        distance = float(np.sqrt(np.mean(np.square(with_noise - without))))
        self.sigma *= _FACTOR if distance < target else 1 / _FACTOR
