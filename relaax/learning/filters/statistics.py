"""Running means and variances of D numbers, in a flat vector.

The vector is float32 [1 + 2 D]: how many rows were seen, their means [D], their variances [D].
"""

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector

DoubleArray = npt.NDArray[np.float64]

#: From here on the oldest rows are forgotten: float32 counts no further than about 16 million.
MOST_ROWS = 1e7

#: The largest number that float32 has.
LARGEST = float(np.finfo(np.float32).max)


def length_of(width: int) -> int:
    """Return the length of the statistics of ``width`` numbers."""
    return 1 + 2 * width


def initial_statistics(width: int) -> FloatVector:
    """Return the statistics of no rows: all zeros."""
    return np.zeros(length_of(width), np.float32)


def statistics_of(rows: npt.NDArray[np.floating]) -> DoubleArray:
    """Return the statistics float64 [1 + 2 D] of rows [B, D]."""
    values = rows.astype(np.float64)
    return np.concatenate([[len(values)], values.mean(axis=0), values.var(axis=0)])


def merge(statistics: npt.NDArray[np.floating], added: npt.NDArray[np.floating]) -> None:
    """Merge ``added`` into ``statistics``, in place, as if all rows had been seen by one.

    Nothing is changed where ``added`` or the result is not finite in float32: that would stay so
    for ever, in all workers and in every checkpoint.

    Chan, Golub and LeVeque 1983, "Algorithms for Computing the Sample Variance", equation (2.1),
    for variances instead of sums of squares.
    """
    count, more = float(statistics[0]), float(added[0])
    if more <= 0 or not np.isfinite(added).all():
        return
    total = count + more
    share = more / total
    mean, variance = np.split(statistics[1:].astype(np.float64), 2)
    added_mean, added_variance = np.split(added[1:].astype(np.float64), 2)
    apart = added_mean - mean
    spread = (1 - share) * np.square(apart)
    merged = np.concatenate(
        [
            [min(total, MOST_ROWS)],
            mean + share * apart,
            (1 - share) * variance + share * (added_variance + spread),
        ]
    )
    if (np.abs(merged) <= LARGEST).all():
        statistics[:] = merged
