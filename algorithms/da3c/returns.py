"""N-step returns, as plain numpy."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]


def n_step_returns(
    rewards: FloatArray,
    terminated: BoolArray,
    truncated: BoolArray,
    cut_values: FloatArray,
    bootstrap_value: float,
    discount: float,
) -> FloatArray:
    """Return the discounted return of each step of a rollout, float32 [T].

    Mnih et al. 2016, algorithm S3: ``R_t = r_t + discount * R_{t+1}``, where the return after the
    last step is ``bootstrap_value``, the value of the state that follows. Episodes may end inside
    the rollout: after a terminated step nothing more is earned; after a truncated one the episode
    would have gone on, and ``cut_values[t]`` is the value of the state where it was cut off.

    rewards, cut_values: float32 [T]; terminated, truncated: bool [T].
    """
    returns = np.empty_like(rewards)
    following = bootstrap_value
    for step in reversed(range(len(rewards))):
        if terminated[step]:
            following = 0.0
        elif truncated[step]:
            following = cut_values[step]
        following = rewards[step] + discount * following
        returns[step] = following
    return returns
