"""Returns of steps, and how far the news of later ones reach back (seed 001; TD(lambda))."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

#: Least mean squared error that others are compared with.
LEAST = 1e-6

#: Memoire's own rate. It leaves the mean where it begins, at 1, for some ten million steps.
RATE = 1e-8

#: Steps whose returns are found at once.
BLOCK = 32


class PriorityScale:
    """Priorities (|error| / c)**exponent, where 2 c**2 is the mean squared error so far.

    The mean moves by ``rate`` for the squared error of each step.
    """

    def __init__(self) -> None:
        self._mean_square = 1.0

    @property
    def mean_square(self) -> float:
        """The mean squared error so far."""
        return self._mean_square

    def priorities(self, errors: FloatArray, exponent: float, rate: float = RATE) -> FloatArray:
        """Return the priorities [N] of steps with ``errors`` [N], and learn from these."""
        scale = np.sqrt(self._mean_square / 2)
        found: FloatArray = (np.abs(errors) / scale) ** exponent
        moved = self._mean_square + rate * float((errors**2 - self._mean_square).sum())
        self._mean_square = max(moved, LEAST)
        return found


IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ReturnRule:
    """How the return of a step follows from rewards and values of J kinds.

    ``discount_factor`` and ``reward_coeff`` are float64 [J].
    """

    discount_factor: FloatArray
    reward_coeff: FloatArray
    mix_lambda: float = 1.0
    #: float64 [J, BLOCK, BLOCK]: how much step b counts in the return of step a.
    _powers: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        behind = np.arange(BLOCK) - np.arange(BLOCK)[:, np.newaxis]
        rate = (self.discount_factor * self.mix_lambda)[:, np.newaxis, np.newaxis]
        powers = np.where(behind >= 0, rate ** np.maximum(behind, 0), 0.0)
        object.__setattr__(self, "_powers", powers)

    def before(
        self, rewards: FloatArray, next_values: FloatArray, next_return: FloatArray
    ) -> FloatArray:
        """Return the returns of N <= BLOCK steps [N, J] before the one of ``next_return`` [J].

        ``next_values`` [N, J] are the values of the steps that follow each.
        """
        count = len(rewards)
        own = rewards + self.discount_factor * (1 - self.mix_lambda) * next_values
        own[-1] += self.discount_factor * self.mix_lambda * next_return
        found: FloatArray = np.einsum("jab,bj->aj", self._powers[:, :count, :count], own)
        return found

    def errors(self, returns: FloatArray, values: FloatArray) -> FloatArray:
        """Return the errors [N] of values [N, J]; errors of several kinds may cancel each other."""
        summed: FloatArray = ((returns - values) * self.reward_coeff).sum(axis=-1)
        return summed

    def changes(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return how much returns [N, J] have changed, [N].

        Memoire weighs them with ``reward_coeff`` itself; a negative one ends its pass at once.
        """
        weighed: FloatArray = (np.abs(after - before) * np.abs(self.reward_coeff)).sum(axis=-1)
        return weighed


@dataclass(frozen=True)
class EpisodeRows:
    """Where the L steps of an episode are in columns [..., J]: at ``places`` int64 [L]."""

    rewards: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    #: float64, renewed in place.
    returns: FloatArray
    places: IntArray


def traced_back(
    rule: ReturnRule, rows: EpisodeRows, pushed: int, is_term: bool, threshold: float
) -> int:
    """Renew the returns after the last ``pushed`` of an episode's L steps have come.

    Goes from the newest step back, and beyond the new ones until the return of a step changes by
    less than ``threshold``. Return the first step whose priority is to be renewed: the step that
    ends the pass keeps its own.
    """
    places = rows.places
    end = len(places) - 1
    newest = places[end]
    rows.returns[newest] = (rows.rewards if is_term else rows.values)[newest]
    first_new = len(places) - pushed
    while end > 0:
        begin = max(end - BLOCK, 0)
        block = places[begin:end]
        after = rule.before(
            rows.rewards[block].astype(np.float64),
            rows.values[places[begin + 1 : end + 1]].astype(np.float64),
            rows.returns[places[end]],
        )
        changes = rule.changes(rows.returns[block], after)
        stops = np.flatnonzero(changes[: max(first_new - begin, 0)] < threshold)
        kept = int(stops[-1]) if len(stops) else 0
        rows.returns[block[kept:]] = after[kept:]
        if len(stops):
            return begin + kept + 1
        end = begin
    return 0
