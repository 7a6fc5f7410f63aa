"""One of several actions, in numpy."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

#: A float32 draw is 0 once in 10**7, and its logarithm would choose any action, however improbable.
_LEAST_EXPONENTIAL = np.float32(1e-8)


@dataclass(frozen=True)
class Categorical:
    """The actions 0 to ``outputs - 1``; the network puts out their logits."""

    outputs: int

    #: Of one action: a number.
    action_shape = ()
    #: What TensorFlow's graphs take; numpy's own int64 is chosen.
    action_dtype = np.int32

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Draw independent standard Gumbel values, float32 [count, A]."""
        # The negative logarithm of an exponential variable has Gumbel's distribution.
        exponential = random.standard_exponential((count, self.outputs), dtype=np.float32)
        gumbel: FloatArray = -np.log(np.maximum(exponential, _LEAST_EXPONENTIAL))
        return gumbel

    def choose(self, outputs: FloatArray, noise: FloatArray) -> npt.NDArray[np.int64]:
        """Return the actions int64 [B] that logits [B, A] and noise make.

        With Gumbel's noise they are samples of the policy (the Gumbel-max trick, Gumbel 1954), with
        zeros the most probable actions.
        """
        actions: npt.NDArray[np.int64] = (outputs + noise).argmax(axis=1)
        return actions

    def log_likelihood(self, outputs: FloatArray, actions: npt.NDArray[np.int64]) -> FloatArray:
        """Return log pi float32 [B] of actions [B], from logits [B, A]."""
        chosen: FloatArray = outputs[np.arange(len(actions)), actions]
        highest = np.maximum.reduce(outputs, axis=1)
        total = np.add.reduce(np.exp(outputs - highest[:, np.newaxis]), axis=1)
        log_likelihood: FloatArray = chosen - highest - np.log(total)
        return log_likelihood
