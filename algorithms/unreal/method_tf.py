"""Auxiliary tasks, which share layers with the policy.

Jaderberg et al. 2017, "Reinforcement learning with unsupervised auxiliary tasks"
(https://arxiv.org/abs/1611.05397). The loss of equation (4) is the sum of the actor-critic's loss
over fresh rollouts and of the losses of three tasks over stored steps: pixel control (section 3.1),
reward prediction (section 3.2) and value replay (section 3.3).

All tensors are float32 and time-major: [T, K] for K rollouts of T rows, see ``RolloutBatch``.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from relaax.algorithm_base import Gradient, Input, Learner, Step, Values
from relaax.learning import losses_tf as losses
from relaax.learning.arrays import zero_padded
from relaax.learning.distributions import ActionValues
from relaax.learning.distributions.categorical_tf import GraphActionValues
from relaax.learning.gradients_tf import GraphRollouts, Terms
from relaax.learning.model import Objective
from relaax.learning.networks import Network
from relaax.learning.networks.compiled_tf import CompiledFunction
from relaax.learning.networks.layers_tf import Tensors, frames_outputs, unroll
from relaax.learning.networks.parameters_tf import ParameterTensors
from relaax.learning.on_policy import VALUE
from relaax.learning.policy import CurrentPolicy
from relaax.learning.returns_tf import n_step_targets
from relaax.learning.rollouts import ROLLOUTS, RolloutBatch
from relaax.observations import mapped
from relaax.parameters.optimizers.optimizer import clip_by_global_norm

from .config import CLASSES, PIXELS, REWARDS

_log = logging.getLogger(__name__)


def pixel_changes(
    images: tf.Tensor, starts: tf.Tensor, cell: int, grid: tuple[int, int]
) -> tf.Tensor:
    """Return how much the pixels of each cell change in each step, [T, K, cells].

    Section 3.1, appendix A: the mean size of the differences over pixels and channels. images:
    [T + 1, K, height, width, channels], bytes are scaled to [0, 1]; starts: [T + 1, K]. The cells
    of ``cell`` pixels to each side lie around the middle. A step behind which another episode
    starts has changed nothing.
    """
    (rows, columns), (height, width) = grid, images.shape[2:4]
    top, left = (height - rows * cell) // 2, (width - columns * cell) // 2
    seen = images[:, :, top : top + rows * cell, left : left + columns * cell]
    seen = tf.cast(seen, tf.float32) / (255.0 if images.dtype == tf.uint8 else 1.0)
    steps, count = starts.shape[0] - 1, starts.shape[1]
    sizes = tf.reduce_mean(tf.abs(seen[1:] - seen[:-1]), axis=-1)
    parts = tf.reshape(sizes, [steps, count, rows, cell, columns, cell])
    changes = tf.reshape(tf.reduce_mean(parts, axis=[3, 5]), [steps, count, rows * columns])
    return changes * (1.0 - starts[1:, :, tf.newaxis])


def control_targets(
    changes: tf.Tensor, terminated: tf.Tensor, valid: tf.Tensor, best: tf.Tensor, discount: float
) -> tf.Tensor:
    """Return ``sum_k discount**k r_{t+k} + discount**n max_a Q(s_{t+n}, a)`` [T, K, cells].

    Section 3.1: n-step Q-learning, to the end of the rollout, for each cell alone. changes:
    [T, K, cells]; best: the values of the best actions [T + 1, K, cells].
    """
    steps, count, cells = changes.shape
    returns, _ = n_step_targets(
        tf.reshape(changes, [steps, -1]),
        tf.repeat(terminated, cells, axis=1),
        tf.repeat(valid, cells, axis=1),
        tf.reshape(best, [steps + 1, -1]),
        discount,
    )
    return tf.reshape(returns, [steps, count, cells])


def reward_classes(rewards: tf.Tensor) -> tf.Tensor:
    """Return int32 classes [...] of rewards: 0 for zero, 1 for positive, 2 for negative."""
    return tf.cast(rewards > 0, tf.int32) + 2 * tf.cast(rewards < 0, tf.int32)


def count_of(batch: GraphRollouts) -> tf.Tensor:
    """Return how many rollouts have steps, one at least: others fill the batch up."""
    return tf.maximum(tf.reduce_sum(tf.reduce_max(batch.valid, axis=0)), 1.0)


class Task(ABC):
    """An auxiliary task: its loss, and a number to be shown beside it."""

    #: The head that it learns.
    head: str
    #: Its part of the whole loss.
    weight: float

    @abstractmethod
    def loss(self, outputs: tf.Tensor, batch: GraphRollouts) -> tf.Tensor:
        """Return the loss of the head's ``outputs``, the mean over rollouts."""


@dataclass(frozen=True)
class PixelControl(Task):
    """Learn for each cell which actions change its pixels the most."""

    weight: float
    discount: float
    cell: int
    grid: tuple[int, int]
    actions: int
    #: The name of the image; "" where the observation has no name.
    image: str
    head = PIXELS

    def values(self, outputs: tf.Tensor) -> tf.Tensor:
        """Return ``Q = V + A - mean(A)``, [T + 1, K, cells, actions], of the head's outputs."""
        cells = self.grid[0] * self.grid[1]
        parts = tf.reshape(outputs, [-1, self.actions + 1])
        values = GraphActionValues(ActionValues(self.actions, is_dueling=True)).values(parts)
        return tf.reshape(values, [*outputs.shape[:2], cells, self.actions])

    def loss(self, outputs: tf.Tensor, batch: GraphRollouts) -> tf.Tensor:
        """See Task: the squares of the errors, summed over steps and cells."""
        observations = batch.observations
        images = observations[self.image] if isinstance(observations, dict) else observations
        changes = pixel_changes(images, batch.starts, self.cell, self.grid)
        values = self.values(outputs)
        best = tf.stop_gradient(tf.reduce_max(values, axis=-1))
        rows = changes, batch.terminated, batch.valid, best
        taken = tf.one_hot(batch.actions, self.actions)[:, :, tf.newaxis]
        errors = tf.reduce_sum(taken * values[:-1], axis=-1) - control_targets(*rows, self.discount)
        sums = tf.reduce_sum(tf.square(errors), axis=-1)
        return tf.reduce_sum(batch.on_policy * sums) / count_of(batch)


@dataclass(frozen=True)
class ValueReplay(Task):
    """Learn the values of stored rollouts, as the actor-critic does of fresh ones."""

    weight: float
    discount: float
    head = VALUE

    def loss(self, outputs: tf.Tensor, batch: GraphRollouts) -> tf.Tensor:
        """See Task: half the squares of the errors, summed over steps."""
        values = outputs[..., 0]
        rows = batch.rewards, batch.terminated, batch.valid, tf.stop_gradient(values)
        returns, _ = n_step_targets(*rows, self.discount)
        return losses.value_loss(values[:-1], returns, batch.valid) / count_of(batch)


@dataclass(frozen=True)
class RewardPrediction(Task):
    """Predict the class of the reward behind some frames."""

    weight: float
    head = REWARDS

    def loss(self, outputs: tf.Tensor, batch: GraphRollouts) -> tf.Tensor:
        """See Task: the cross entropy of logits [K, 3] and the class in the last row."""
        classes = tf.one_hot(reward_classes(batch.rewards[-1]), CLASSES)
        entropies = tf.nn.softmax_cross_entropy_with_logits(classes, outputs)
        steps = batch.valid[-1]
        return tf.reduce_sum(steps * entropies) / tf.maximum(tf.reduce_sum(steps), 1.0)


@dataclass(frozen=True)
class Losses:
    """The sum of all losses, equation (4): of fresh rollouts, and of tasks by their tables.

    ``tables`` are the tables of batches behind the fresh ones, in their order.
    """

    network: Network
    actor_critic: Objective
    tables: Mapping[str, Sequence[Task]]

    def loss(
        self, parameters: Tensors, scale: tf.Tensor, fresh: GraphRollouts, *stored: GraphRollouts
    ) -> tuple[tf.Tensor, Terms]:
        """Return the loss, and its parts by name; ``scale`` is one by the fresh rollouts."""
        loss, terms = self.actor_critic.loss(self._unrolled(parameters, fresh), fresh)
        steps = tf.maximum(tf.reduce_sum(fresh.valid), 1.0)
        loss, terms = scale * loss, {name: term / steps for name, term in terms.items()}
        for tasks, batch in zip(self.tables.values(), stored, strict=True):
            outputs = self._outputs(parameters, batch, [task.head for task in tasks])
            for task in tasks:
                own = task.loss(outputs[task.head], batch)
                loss += task.weight * own
                terms[f"{type(task).__name__} loss"] = own
        return loss, terms

    def _outputs(
        self, parameters: Tensors, batch: GraphRollouts, names: Sequence[str]
    ) -> dict[str, tf.Tensor]:
        heads = [self.network.head(name) for name in names]
        if heads[0].frames is None:
            return self._unrolled(parameters, batch, names)
        frames = mapped(lambda rows: rows[:-1], batch.observations)
        return {h.name: frames_outputs(self.network, h, parameters, frames) for h in heads}

    def _unrolled(
        self, parameters: Tensors, batch: GraphRollouts, names: Sequence[str] | None = None
    ) -> dict[str, tf.Tensor]:
        rows = batch.observations, batch.starts, batch.recurrent_state, batch.valid
        heads = None if names is None else [self.network.head(name) for name in names]
        return unroll(self.network, parameters, *rows, heads=heads)


class UnrealLearner(Learner):
    """Makes one gradient of the sum of all losses, of fresh rollouts and stored ones together."""

    def __init__(
        self,
        losses: Losses,
        tensors: ParameterTensors,
        policy: CurrentPolicy,
        inputs: Mapping[str, Input],
        gradient_norm_clipping: float | None,
    ) -> None:
        self.inputs = inputs
        self.losses = losses
        self._tensors, self._policy = tensors, policy
        self._gradient_norm_clipping = gradient_norm_clipping
        self._graph = CompiledFunction(self._gradient, jit_compile=False)

    def steps(self, batches: Mapping[str, RolloutBatch]) -> Iterator[Step]:
        """See Learner; a gradient that is not finite is left out."""
        policy, fresh = self._policy.current, batches[ROLLOUTS]
        columns: list[Any] = []
        for table, each in self.inputs.items():
            columns += (_padded(column, each.batch_size) for column in batches[table].columns())
        scale = np.array(1 / fresh.count, np.float32)
        found, terms = self._graph(policy.parameters.tensors, scale, *columns)
        gradient, norm = clip_by_global_norm(found.numpy(), self._gradient_norm_clipping)
        if not np.isfinite(norm):
            _log.warning(
                "%d rollouts are not learnt from: their gradient is not finite", fresh.count
            )
            return
        shown = {name: float(term) for name, term in terms.items()}
        yield Step(terms={**shown, "grad": norm}, update=Gradient(gradient, policy.version))

    def take(self, values: Values) -> None:
        """Compute the next gradient at ``values``."""
        self._policy.publish(values)

    def _gradient(
        self, parts: Sequence[tf.Tensor], scale: tf.Tensor, *columns: Any
    ) -> tuple[tf.Tensor, Terms]:
        width = len(columns) // len(self.inputs)
        begins = range(0, len(columns), width)
        batches = [GraphRollouts(*columns[begin : begin + width]) for begin in begins]
        with tf.GradientTape() as tape:
            tape.watch(parts)  # in the order of the manifest
            loss, terms = self.losses.loss(self._tensors.by_name(parts), scale, *batches)
        slopes = tape.gradient(loss, parts, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return tf.concat([tf.reshape(slope, [-1]) for slope in slopes], axis=0), dict(terms)


def _padded(column: Any, count: int) -> Any:
    """Return a column of rollouts with rollouts of zeros behind them, ``count`` in all."""
    return mapped(lambda part: zero_padded(part, count, axis=1), column)
