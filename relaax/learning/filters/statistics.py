"""Running means and deviations of D numbers, in a flat vector.

They are *moments*, float64 [1 + 2 D]: how many rows were seen, their means [D], their standard
deviations [D]. In a vector of parameters, which is float32, they are *statistics* [2 + 4 D]: the
moments as float32 can tell them, and behind these the rest of each. So 48 bits of a number are
kept, and a position of 5,400,000 that moves by 0.3 keeps its deviation.
"""

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector

DoubleArray = npt.NDArray[np.float64]

#: From here on the oldest rows are slowly forgotten.
MOST_ROWS = 1e7

#: The largest number that float32 has.
LARGEST = float(np.finfo(np.float32).max)


def length_of(width: int) -> int:
    """Return the length of the statistics of ``width`` numbers."""
    return 2 * (1 + 2 * width)


def initial_statistics(width: int) -> FloatVector:
    """Return the statistics of no rows: all zeros."""
    return np.zeros(length_of(width), np.float32)


def statistics_of(rows: npt.NDArray[np.floating]) -> FloatVector:
    """Return the statistics of rows [B, D], at least one."""
    return packed(moments_of(rows))


def merge(statistics: FloatVector, added: FloatVector) -> None:
    """Merge ``added`` into ``statistics``, in place; see ``merge_moments``."""
    moments = unpacked(statistics)
    merge_moments(moments, unpacked(added))
    statistics[:] = packed(moments)


def packed(moments: DoubleArray) -> FloatVector:
    """Return moments float64 [N] as statistics float32 [2 N]."""
    near = moments.astype(np.float32)
    return np.concatenate([near, (moments - near).astype(np.float32)])


def unpacked(statistics: FloatVector) -> DoubleArray:
    """Return the moments float64 [N] in statistics float32 [2 N]."""
    near, rest = np.split(statistics.astype(np.float64), 2)
    moments: DoubleArray = near + rest
    return moments


def initial_moments(width: int) -> DoubleArray:
    """Return the moments of no rows: all zeros."""
    return np.zeros(1 + 2 * width)


def moments_of(rows: npt.NDArray[np.floating]) -> DoubleArray:
    """Return the moments of rows [B, D], at least one."""
    values = rows.astype(np.float64)
    apart = values - values[0]  # so that what is alike has a deviation of exactly 0
    return np.concatenate([[len(values)], values[0] + apart.mean(axis=0), apart.std(axis=0)])


def merge_moments(moments: DoubleArray, added: DoubleArray) -> None:
    """Merge ``added`` into ``moments``, in place, as if all rows had been seen by one.

    Nothing is changed where ``added`` or the result is not finite in float32: that would stay so
    for ever, in all workers and in every checkpoint.

    Chan, Golub and LeVeque 1983, "Algorithms for Computing the Sample Variance", equation (2.1),
    for deviations instead of sums of squares.
    """
    count, more = float(moments[0]), float(added[0])
    if not (more > 0 and np.isfinite(added).all()):
        return
    total = count + more
    share = more / total
    mean, deviation = np.split(moments[1:], 2)
    added_mean, added_deviation = np.split(added[1:], 2)
    apart = added_mean - mean
    spread = np.square(added_deviation) + (1 - share) * np.square(apart)
    merged = np.concatenate(
        [
            [min(total, MOST_ROWS)],
            mean + share * apart,
            np.sqrt((1 - share) * np.square(deviation) + share * spread),
        ]
    )
    if (np.abs(merged) <= LARGEST).all():
        moments[:] = merged
