"""A small environment with continuous actions: points that must be moved to their targets."""

import numpy as np

#: Steps of an episode; then it terminates.
STEPS = 8


#: The mean return of points that stand still. Moves without any sense bring -11, the best -0.2.
STANDING_STILL = -6.2

#: What a training must reach.
GOAL = -3.0


class Points:
    """``count`` points in the plane; a state is what is left of the way to the target.

    An action is the next move, of at most 0.5 in each direction. The reward is the distance that is
    left, negative. An episode begins where the one before ends.
    """

    def __init__(self, count, seed=0):
        self._random = np.random.default_rng(seed)
        self._count = count
        self._steps = 0
        self._returns = np.zeros(count)
        #: The mean return of the points' episodes, one after the other.
        self.returns = []

    def start(self):
        """Return the first states, float32 [count, 2]."""
        self._left = self._random.uniform(-1, 1, (self._count, 2)).astype(np.float32)
        return self._left

    def step(self, actions):
        """Return rewards, states (of the next episodes, where these end) and terminated."""
        self._left = self._left - np.clip(actions, -0.5, 0.5)
        rewards = -np.linalg.norm(self._left, axis=1).astype(float)
        self._returns += rewards
        self._steps += 1
        is_end = self._steps % STEPS == 0
        if is_end:
            self.returns.append(self._returns.mean())
            self._returns = np.zeros(self._count)
            self.start()
        return rewards, self._left, np.full(self._count, is_end)
