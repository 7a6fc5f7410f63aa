"""Actions by their values, in numpy: one of several, or one for each of several choices."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from relaax.learning.distributions.categorical import Mask

FloatArray = npt.NDArray[np.float32]

#: The value of a forbidden action: lower than any other, whatever exploration adds to it.
FORBIDDEN_VALUE = np.float32(-1e38)


@dataclass(frozen=True)
class ActionValues:
    """The action of the highest value; what a network puts out are the values, or makes them.

    - With ``is_dueling``, outputs are an advantage for each action and one value of the state
      behind them: ``Q = V + A - mean(A)`` (Wang et al. 2016, https://arxiv.org/abs/1511.06581,
      equation 9).
    - With ``atoms`` above 1, outputs are logits of so many returns from ``low`` to ``high``, for
      each action (Bellemare et al. 2017, https://arxiv.org/abs/1707.06887, section 4.1); the value
      is their mean. Of a dueling network they are summed up atom by atom (Hessel et al. 2018,
      https://arxiv.org/abs/1710.02298, "The Integrated Agent").
    """

    actions: int
    is_dueling: bool = False
    atoms: int = 1
    low: float = -10.0
    high: float = 10.0

    #: Of one action: a number.
    action_shape = ()
    action_dtype = np.int32

    @property
    def outputs(self) -> int:
        """How many numbers the network puts out."""
        return (self.actions + self.is_dueling) * self.atoms

    @cached_property
    def support(self) -> FloatArray:
        """The returns that have probabilities, float32 [atoms]."""
        return np.linspace(self.low, self.high, self.atoms, dtype=np.float32)

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Return no noise, float32 [count, A]."""
        return np.zeros((count, self.actions), np.float32)

    def choose(self, outputs: FloatArray, noise: FloatArray) -> npt.NDArray[np.int64]:
        """Return the actions int64 [B] with the highest sums of value and noise [B, A]."""
        actions: npt.NDArray[np.int64] = (self.values(outputs) + noise).argmax(axis=1)
        return actions

    def mode(self, outputs: FloatArray) -> npt.NDArray[np.int64]:
        """Return the best actions int64 [B], from outputs [B, N]."""
        actions: npt.NDArray[np.int64] = self.values(outputs).argmax(axis=1)
        return actions

    def masked(self, outputs: FloatArray, mask: Mask) -> FloatArray:
        """Return outputs [B, N + A] with the mask [B, A] of actions behind them.

        The values of others stay as they are: those of a dueling network are relative to the mean
        of all actions.
        """
        return np.concatenate([outputs, mask], axis=1, dtype=np.float32)

    def values(self, outputs: FloatArray) -> FloatArray:
        """Return the values of all actions, float32 [B, A], from outputs [B, N].

        ``FORBIDDEN_VALUE`` is that of an action that is masked.
        """
        if outputs.shape[1] > self.outputs:
            of_all = self.values(outputs[:, : self.outputs])
            return np.where(outputs[:, self.outputs :] > 0, of_all, FORBIDDEN_VALUE)
        parts = outputs.reshape(len(outputs), -1, self.atoms)
        if self.is_dueling:
            advantages, of_state = parts[:, :-1], parts[:, -1:]
            parts = of_state + advantages - advantages.mean(axis=1, keepdims=True)
        if self.atoms == 1:
            alone: FloatArray = parts[:, :, 0]
            return alone
        weights = np.exp(parts - parts.max(axis=2, keepdims=True))
        values: FloatArray = (weights @ self.support) / weights.sum(axis=2)
        return values


@dataclass(frozen=True)
class ValuesOfChoices:
    """Several choices at once, each the action of the highest value; such as those of a team.

    All have the same number of actions. The network puts out the values of the first choice, then
    those of the second, and so on.
    """

    choices: int
    actions: int

    action_dtype = np.int32

    @property
    def outputs(self) -> int:
        """The number of all values."""
        return self.choices * self.actions

    @property
    def action_shape(self) -> tuple[int, ...]:
        """One number for each choice."""
        return (self.choices,)

    def noise(self, random: np.random.Generator, count: int) -> FloatArray:
        """Return no noise, float32 [count, N]."""
        return np.zeros((count, self.outputs), np.float32)

    def choose(self, outputs: FloatArray, noise: FloatArray) -> npt.NDArray[np.int64]:
        """Return the actions int64 [B, choices] with the highest sums of value and noise [B, N]."""
        return self.mode(outputs + noise)

    def mode(self, outputs: FloatArray) -> npt.NDArray[np.int64]:
        """Return the best actions int64 [B, choices], from values [B, N]."""
        values = outputs.reshape(len(outputs), self.choices, self.actions)
        actions: npt.NDArray[np.int64] = values.argmax(axis=-1)
        return actions

    def masked(self, outputs: FloatArray, mask: Mask) -> FloatArray:
        """Return values [B, N], ``FORBIDDEN_VALUE`` where the ``mask`` [B, N] is 0."""
        return np.where(np.asarray(mask, np.bool_), outputs, FORBIDDEN_VALUE)
