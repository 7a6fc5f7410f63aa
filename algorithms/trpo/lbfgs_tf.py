"""L-BFGS: the minimum of a smooth function of many parameters, inside a graph.

Liu and Nocedal 1989 (https://doi.org/10.1007/BF01589116); algorithms 7.4 and 7.5 of Nocedal and
Wright 2006, "Numerical Optimization". The line search finds a length with the weak Wolfe conditions
by bisection: algorithm 2.6 of Lewis and Overton 2013 (https://doi.org/10.1007/s10107-012-0514-2).
"""

from typing import NamedTuple

import tensorflow as tf

from .slopes_tf import OfParameters, dot, value_and_slope

#: So many of the latest steps make the model of the curvature.
REMEMBERED = 10

#: A step must go down by this part of the first slope along it, and leave at most that part of it.
LEAST_DESCENT, MOST_SLOPE = 1e-4, 0.9

#: Lengths that are tried along one direction.
TRIALS = 20

#: A point whose partial derivatives are all smaller is a minimum.
LEAST_SLOPE = 1e-5

#: A step is forgotten if the slope along it grows by less than this part of the slope before.
LEAST_CURVATURE = 1e-7


class Point(NamedTuple):
    """Parameters [size], and the function's value and gradient [size] there."""

    parameters: tf.Tensor
    value: tf.Tensor
    slope: tf.Tensor


class History(NamedTuple):
    """The latest steps, the newest last; rows of zeros stand for steps that were not made yet."""

    #: s [REMEMBERED, size]: of the parameters.
    steps: tf.Tensor
    #: y [REMEMBERED, size]: changes of the gradient.
    changes: tf.Tensor
    #: rho [REMEMBERED]: 1 / (s . y).
    inverse: tf.Tensor


def minimized(function: OfParameters, start: tf.Tensor, iterations: int) -> tf.Tensor:
    """Return the parameters [size] that ``iterations`` from ``start`` lead to, or fewer.

    The value there is never above the value at ``start``. It ends early at a minimum, and where no
    length along the direction goes down: near a minimum float32 rounds the differences away.
    """

    def goes_on(index: tf.Tensor, has_moved: tf.Tensor, point: Point, _: History) -> tf.Tensor:
        return (index < iterations) & has_moved & (tf.reduce_max(tf.abs(point.slope)) > LEAST_SLOPE)

    def step(
        index: tf.Tensor, _: tf.Tensor, point: Point, history: History
    ) -> tuple[tf.Tensor, tf.Tensor, Point, History]:
        new, has_moved = searched(function, point, -times_inverse_hessian(history, point.slope))
        return index + 1, has_moved, new, extended(history, point, new)

    first = Point(start, *value_and_slope(function, start))
    rows = tf.zeros([REMEMBERED, start.shape[0]])
    loop = tf.constant(0), tf.constant(True), first, History(rows, rows, tf.zeros([REMEMBERED]))
    found: Point = tf.while_loop(goes_on, step, loop)[2]
    return found.parameters


def times_inverse_hessian(history: History, vector: tf.Tensor) -> tf.Tensor:
    """Return the product [size] with the inverse of the Hessian, nearly: algorithm 7.4.

    Without any steps it is the vector, at most 1 long.
    """
    newest = history.changes[-1]
    scale = tf.where(
        history.inverse[-1] > 0,
        tf.math.divide_no_nan(1.0, history.inverse[-1] * dot(newest, newest)),  # (7.20)
        1.0 / tf.maximum(tf.norm(vector), 1.0),
    )
    weights = {}
    for row in reversed(range(REMEMBERED)):
        weights[row] = history.inverse[row] * dot(history.steps[row], vector)
        vector -= weights[row] * history.changes[row]
    vector *= scale
    for row in range(REMEMBERED):
        wanted = weights[row] - history.inverse[row] * dot(history.changes[row], vector)
        vector += wanted * history.steps[row]
    return vector


def searched(function: OfParameters, point: Point, direction: tf.Tensor) -> tuple[Point, tf.Tensor]:
    """Return a point along ``direction`` [size] with the weak Wolfe conditions.

    After ``TRIALS`` lengths the last point that was low enough is returned, or else ``point``. The
    second value says whether the parameters have changed.
    """
    descent = dot(point.slope, direction)

    def goes_on(tried: tf.Tensor, is_found: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
        return ~is_found & (tried < TRIALS)

    def trial(
        tried: tf.Tensor, _: tf.Tensor, low: tf.Tensor, high: tf.Tensor, best: Point
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor, Point]:
        # (low, inf) is doubled, and any other interval halved; the first length is 1.
        length = tf.where(tf.math.is_inf(high), tf.maximum(2.0 * low, 1.0), (low + high) / 2.0)
        parameters = point.parameters + length * direction
        new = Point(parameters, *value_and_slope(function, parameters))
        is_low = new.value <= point.value + LEAST_DESCENT * length * descent
        is_flat = dot(new.slope, direction) >= MOST_SLOPE * descent
        best = Point(*(tf.where(is_low, *pair) for pair in zip(new, best, strict=True)))
        low, high = tf.where(is_low, length, low), tf.where(is_low, high, length)
        return tried + 1, is_low & is_flat, low, high, best

    first = tf.constant(0), tf.constant(False), tf.constant(0.0), tf.constant(float("inf")), point
    _, _, low, _, best = tf.while_loop(goes_on, trial, first)
    return best, low > 0


def extended(history: History, old: Point, new: Point) -> History:
    """Return the history with the step from ``old`` to ``new`` in the place of the oldest one.

    A step without curvature is left out, so that the model stays positive definite.
    """
    step, change = new.parameters - old.parameters, new.slope - old.slope
    curvature = dot(step, change)
    added = History(step, change, tf.math.divide_no_nan(1.0, curvature))
    is_curved = curvature > -LEAST_CURVATURE * dot(old.slope, step)
    return History(
        *(
            tf.where(is_curved, tf.concat([rows[1:], row[tf.newaxis]], axis=0), rows)
            for rows, row in zip(history, added, strict=True)
        )
    )
