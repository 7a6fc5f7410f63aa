"""Logits of actions that are forbidden, in numpy."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_] | npt.NDArray[np.uint8]

#: The logit of a forbidden action: so low that its probability is 0, and finite, so that
#: 0 times its logarithm is 0.
FORBIDDEN = np.float32(-1e30)


def masked_logits(logits: FloatArray, mask: Mask) -> FloatArray:
    """Return logits [..., A], ``FORBIDDEN`` where ``mask`` [..., A] is 0.

    A row whose mask allows nothing becomes a row of zeros: each action is equally probable, and
    nothing is learnt from it.
    """
    is_allowed = np.asarray(mask, np.bool_)
    instead = np.where(is_allowed.any(axis=-1, keepdims=True), FORBIDDEN, np.float32(0))
    return np.where(is_allowed, logits, instead)
