"""One of several actions, in numpy."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

Mask = npt.NDArray[np.bool_] | npt.NDArray[np.uint8]

#: The logit of a forbidden action: so low that its probability is 0, and finite, so that
#: 0 times its logarithm is 0.
FORBIDDEN = np.float32(-1e30)

#: A float32 draw is 0 once in 10**7, and its logarithm would choose any action, however improbable.
_LEAST_EXPONENTIAL = np.float32(1e-8)


def masked_logits(logits: FloatArray, mask: Mask) -> FloatArray:
    """Return logits [..., A], ``FORBIDDEN`` where ``mask`` [..., A] is 0.

    A row whose mask allows nothing becomes a row of zeros: each action is equally probable, and
    nothing is learnt from it.
    """
    is_allowed = np.asarray(mask, np.bool_)
    instead = np.where(is_allowed.any(axis=-1, keepdims=True), FORBIDDEN, np.float32(0))
    return np.where(is_allowed, logits, instead)


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
        return gumbel_noise(random, (count, self.outputs))

    def choose(self, outputs: FloatArray, noise: FloatArray) -> npt.NDArray[np.int64]:
        """Return the actions int64 [B] that logits [B, A] and noise make.

        With Gumbel's noise they are samples of the policy (the Gumbel-max trick, Gumbel 1954), with
        zeros the most probable actions.
        """
        return self.mode(outputs + noise)

    def mode(self, outputs: FloatArray) -> npt.NDArray[np.int64]:
        """Return the most probable actions int64 [B], from logits [B, A]."""
        actions: npt.NDArray[np.int64] = outputs.argmax(axis=-1)
        return actions

    def log_likelihood(self, outputs: FloatArray, actions: npt.NDArray[np.int64]) -> FloatArray:
        """Return log pi float32 [B] of actions [B], from logits [B, A]."""
        chosen: FloatArray = outputs[np.arange(len(actions)), actions]
        highest = np.maximum.reduce(outputs, axis=1)
        total = np.add.reduce(np.exp(outputs - highest[:, np.newaxis]), axis=1)
        log_likelihood: FloatArray = chosen - highest - np.log(total)
        return log_likelihood

    def masked(self, outputs: FloatArray, mask: Mask) -> FloatArray:
        """Return logits [B, A] without the actions whose ``mask`` [B, A] is 0.

        A row that allows nothing becomes a uniform one, which teaches nothing.
        """
        return masked_logits(outputs, mask)


def gumbel_noise(random: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Draw independent standard Gumbel values, float32, of at most 18.5."""
    # The negative logarithm of an exponential variable has Gumbel's distribution.
    exponential = random.standard_exponential(shape, dtype=np.float32)
    gumbel: FloatArray = -np.log(np.maximum(exponential, _LEAST_EXPONENTIAL))
    return gumbel


def _log_probabilities(logits: FloatArray) -> FloatArray:
    """Return log softmax [..., A]."""
    below = logits - logits.max(axis=-1, keepdims=True)
    log_probabilities: FloatArray = below - np.log(np.exp(below).sum(axis=-1, keepdims=True))
    return log_probabilities
