"""Now and then one of several actions, whatever is known of it."""

import numpy as np
import numpy.typing as npt

from relaax.learning.exploration.ladder import ONE_RUNG, Ladder
from relaax.learning.exploration.noise import Clock
from relaax.parameters.schedule import Linear

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

#: Added to the values of all actions, it hides which of them is the best.
CERTAIN = np.float32(1e30)


class EpsilonGreedy:
    """The action of the highest value, or with probability epsilon one drawn from all allowed.

    Mnih et al. 2015, "Human-level control through deep reinforcement learning", algorithm 1. On
    a ``ladder`` environments have different powers of epsilon. Of several ``choices`` at once, each
    is drawn or not for itself.
    """

    def __init__(
        self,
        actions: int,
        epsilon: Linear,
        global_t: Clock,
        random: np.random.Generator,
        ladder: Ladder = ONE_RUNG,
        exponent: float = 7.0,
        choices: int = 1,
    ) -> None:
        self._actions = actions
        self._epsilon = epsilon
        self._global_t = global_t
        self._random = random
        self._ladder = ladder
        self._exponent = exponent
        self._choices = choices

    def grow(self, capacity: int) -> None:
        """See NoiseSource."""

    def start(self, slots: IntArray) -> None:
        """See NoiseSource."""

    def draw(self, slots: IntArray) -> FloatArray:
        """Return the numbers that are added to the values of all actions, float32 [B, N].

        N: the actions of all choices.
        """
        powers = self._ladder.epsilon_powers(slots, self._exponent)
        epsilons = np.repeat(self._epsilon.at(self._global_t()) ** powers, self._choices)
        explores = np.flatnonzero(self._random.random(len(epsilons)) < epsilons)
        noise = np.zeros((len(epsilons), self._actions), np.float32)
        # In an order drawn at random: the first of those that are allowed is taken.
        noise[explores] = CERTAIN * (1 + self._random.random((len(explores), self._actions)))
        return noise.reshape(len(slots), self._choices * self._actions)
