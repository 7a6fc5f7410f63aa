"""Smaller pictures: each pixel is the mean of the area that it covers."""

import numpy as np
from numpy.typing import NDArray


class AreaAverage:
    """Shrinks grey pictures ``[H, W]`` to ``[height, width]``, as OpenCV's INTER_AREA does.

    A pixel of the picture counts by the part of it that lies in the area. ValueError when a side
    would grow.
    """

    def __init__(self, shape: tuple[int, int], smaller: tuple[int, int]) -> None:
        self._rows, weights = _covered(shape[0], smaller[0])
        self._row_weights = weights[:, :, None]
        self._columns, self._column_weights = _covered(shape[1], smaller[1])

    def __call__(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the smaller picture, ``uint8``."""
        rows = (picture[self._rows] * self._row_weights).sum(axis=1)  # [height, W]
        means: NDArray[np.float32] = (rows[:, self._columns] * self._column_weights).sum(axis=2)
        return np.rint(means).astype(np.uint8)


def _covered(before: int, after: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Return ``[after, most]``: which pixels each area covers, and how much each counts."""
    if after > before:
        raise ValueError(f"{before} pixels cannot be shrunk to {after}")
    edges = np.linspace(0, before, after + 1)
    first = np.floor(edges[:-1] + 1e-9).astype(np.intp)
    most = int(np.max(np.ceil(edges[1:] - 1e-9) - first))
    pixels = first[:, None] + np.arange(most)
    parts = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    weights = np.clip(parts, 0, None) * after / before
    return np.minimum(pixels, before - 1), weights.astype(np.float32)
