"""Draws in proportion to weights, of which each falls when it is drawn."""

from collections import Counter

import numpy as np
import numpy.typing as npt

from relaax.replay.priority_tree import PriorityTree

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def drawn(
    tree: PriorityTree, count: int, generator: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return ``count`` places and their priorities, drawn with replacement."""
    places = tree.find(generator.random(count) * tree.total)
    return places, tree.priorities(places)


def drawn_with_decay(
    tree: PriorityTree, count: int, decay: float, generator: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return places [N] and their priorities [N] when they were drawn, one after the other.

    The priority of a place is multiplied by ``decay`` < 1 when it is drawn. N is ``count``, or less
    if the tree has nothing left.

    Many are proposed at once, by the priorities before: of a place that was drawn k times since,
    one in ``decay ** -k`` proposals counts. So each draw is as probable as if it was made alone.
    """
    places: list[int] = []
    weights: list[float] = []
    while len(places) < count and tree.total > 0:
        proposed, before = drawn(tree, count - len(places), generator)
        times: Counter[int] = Counter()
        for place, weight, chance in zip(
            proposed.tolist(), before.tolist(), generator.random(len(proposed)), strict=True
        ):
            left = decay ** times[place]
            if chance < left:
                times[place] += 1
                places.append(place)
                weights.append(weight * left)
        chosen = np.array(list(times), np.int64)
        counts = np.array(list(times.values()), np.float64)
        tree.set(chosen, tree.priorities(chosen) * decay**counts)
    return np.array(places, np.int64), np.array(weights, np.float64)
