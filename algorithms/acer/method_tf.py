"""Actor-critic with experience replay (Wang et al. 2017, https://arxiv.org/abs/1611.01224).

Equations are those of the paper. Here are the order of updates (algorithm 1), the trust region
(section 3.3) and the losses of discrete actions (algorithm 2); ``continuous_tf`` has those of
continuous ones.

Gradients of the policy are found in two stages: first those of the statistics of its distribution
in each state, for discrete actions their probabilities, and then by the network's chain rule those
of its parameters.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
import tensorflow as tf

from relaax.algorithm_base import Input, Step
from relaax.learning.distributions.categorical_tf import masked_logits
from relaax.learning.gradients_tf import GraphRollouts, Terms
from relaax.learning.graph_learner_tf import GraphLearner
from relaax.learning.losses_tf import MOST_LOG_RATIO
from relaax.learning.networks import POLICY, Network
from relaax.learning.networks.parameters_tf import unrolled
from relaax.learning.off_policy.config import POLICY_VARIABLE
from relaax.learning.returns_tf import retrace_targets
from relaax.learning.rollouts import DISTRIBUTION, ROLLOUTS, RolloutBatch
from relaax.learning.variables_tf import Variables, scaled_down

from .config import ACTION_VALUES

#: The follower of the policy: the average policy network.
AVERAGE = "average"

#: Gradients are those of probabilities that are at least so large.
LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True)
class Numbers:
    """The numbers of the method: gamma, c, delta (None: no trust region), and weights of losses."""

    discount: float
    largest_weight: float
    trust_region: float | None
    entropy_beta: float
    value_loss_weight: float


class Actions(ABC):
    """The losses of discrete actions, or of continuous ones."""

    @abstractmethod
    def loss(self, batch: GraphRollouts, at: Mapping[str, tf.Tensor]) -> tuple[tf.Tensor, Terms]:
        """Return the loss, inside a graph, and numbers to be shown by name.

        at: all variables by name, [size]; those that are learnt are watched.
        """


class Acer(GraphLearner):
    """Algorithm 1: an update from fresh rollouts, and then a few from replay.

    There are n updates from replay, n drawn from a Poisson distribution with the mean
    ``replay_ratio``; each takes ``rollouts`` others of those that were drawn for all of them, and
    where n is so large that these do not reach, the first ones are taken once more.
    """

    def __init__(
        self,
        variables: Variables,
        inputs: Mapping[str, Input],
        actions: Actions,
        *,
        replay_ratio: float,
        rollouts: int,
        average_decay: float,
        gradient_norm: float | None,
        random: np.random.Generator,
    ) -> None:
        super().__init__(variables, inputs)
        self._actions, self._random = actions, random
        self._replay_ratio, self._rollouts = replay_ratio, rollouts
        self._average_decay, self._gradient_norm = average_decay, gradient_norm

    def steps(self, batches: Mapping[str, RolloutBatch]) -> Iterator[Step]:
        """See Learner: all updates are one step."""
        fresh = batches[ROLLOUTS]
        drawn = [batches[name] for name in self.inputs if name != ROLLOUTS]
        replayed = [part for batch in drawn for part in self._parts(batch)]
        found = [self._graph(tuple(part.columns()))[0] for part in (fresh, *replayed)]
        terms = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
        yield Step(updates=len(found), terms={**terms, "updates from replay": float(len(replayed))})

    def update(self, *batches: GraphRollouts) -> tuple[Terms, Mapping[str, tf.Tensor]]:
        """See GraphLearner: a step down the loss; the average policy follows."""
        (batch,) = batches
        at, norms = self.variables.all(), []
        learnt = [at[name] for name in self.variables.names]
        with tf.GradientTape() as tape:
            tape.watch(learnt)
            loss, terms = self._actions.loss(batch, at)
        gradients = tape.gradient(loss, learnt)
        for name, gradient in zip(self.variables.names, gradients, strict=True):
            shorter, norm = scaled_down(gradient, self._gradient_norm)
            self.variables.descend(name, shorter)
            norms.append(norm)
        self.variables.follow(1.0 - self._average_decay)
        return {**terms, "gradient norm": norms[0]}, {}

    def _parts(self, batch: RolloutBatch) -> Iterator[RolloutBatch]:
        """Yield the rollouts of each update from replay: others each time, as far as they reach."""
        updates = self._random.poisson(self._replay_ratio)
        parts = self._random.permutation(batch.count).reshape(-1, self._rollouts)
        for part in islice(cycle(parts), updates):
            yield batch.chosen(part)


class DiscreteActions(Actions):
    """Algorithm 2: a policy and the values of all actions.

    ``action_mask`` names the observation that says which actions are allowed.
    """

    def __init__(self, network: Network, action_mask: str | None, numbers: Numbers) -> None:
        self._network, self._mask, self._numbers = network, action_mask, numbers

    def loss(self, batch: GraphRollouts, at: Mapping[str, tf.Tensor]) -> tuple[tf.Tensor, Terms]:
        """See Actions."""
        numbers, outputs = self._numbers, unrolled(self._network, at[POLICY_VARIABLE], batch)
        average = unrolled(self._network, at[AVERAGE], batch, [POLICY])[POLICY]
        log_policy, action_values = self._log_policy(outputs[POLICY], batch), outputs[ACTION_VALUES]
        policy, critic = tf.exp(log_policy), tf.stop_gradient(action_values)
        fixed = tf.stop_gradient(policy)
        values = tf.reduce_sum(fixed * critic, axis=-1)  # [T + 1, K]

        taken = tf.one_hot(batch.actions, policy.shape[-1])
        ratios = ratios_of(
            tf.stop_gradient(log_policy[:-1]), tf.nn.log_softmax(batch.extras[DISTRIBUTION])
        )  # of all actions, [T, K, A]
        ratio = tf.reduce_sum(taken * ratios, axis=-1)
        chosen_values = tf.reduce_sum(taken * action_values[:-1], axis=-1)
        targets = retrace_targets(
            batch.rewards, batch.terminated, values, tf.stop_gradient(chosen_values),
            batch.on_policy * tf.minimum(1.0, ratio), numbers.discount,
        )  # fmt: skip

        gradient = gradient_of_probabilities(
            fixed[:-1], taken, ratios, targets, critic[:-1], numbers.largest_weight
        )
        gradient += numbers.entropy_beta * gradient_of_entropy(fixed[:-1])
        towards = -tf.exp(self._log_policy(average, batch)[:-1]) / floored(fixed[:-1])
        direction = within_region(gradient, towards, numbers.trust_region)

        policy_gain = tf.reduce_sum(direction * policy[:-1], axis=-1)
        value_loss = 0.5 * tf.square(targets - chosen_values)  # (6)
        loss = mean(numbers.value_loss_weight * value_loss - policy_gain, batch.on_policy)
        entropy = -tf.reduce_sum(policy * log_policy, axis=-1)[:-1]
        terms = terms_of(batch, gradient, direction, value_loss, values[:-1], ratio, entropy)
        return loss, terms

    def _log_policy(self, logits: tf.Tensor, batch: GraphRollouts) -> tf.Tensor:
        """Return the logarithms of probabilities [T + 1, K, A] without masked actions."""
        if self._mask is not None:
            logits = masked_logits(logits, batch.observations[self._mask])
        return tf.nn.log_softmax(logits)


def ratios_of(log_likelihoods: tf.Tensor, log_then: tf.Tensor) -> tf.Tensor:
    """Return rho, [...]: likelihoods by the policy now over those when the action was drawn."""
    return tf.exp(tf.minimum(log_likelihoods - log_then, MOST_LOG_RATIO))


def correction_of(ratios: tf.Tensor, largest: float) -> tf.Tensor:
    """Return the weight of the critic's gradient where ``ratios`` are cut: [rho - c]+ / rho."""
    return tf.maximum(0.0, 1.0 - largest / ratios)


def gradient_of_probabilities(
    policy: tf.Tensor,
    taken: tf.Tensor,
    ratios: tf.Tensor,
    targets: tf.Tensor,
    action_values: tf.Tensor,
    largest: float,
) -> tf.Tensor:
    """Return the gradient of the expected return by the policy's probabilities: equation (10).

    ``d log phi_a / d phi_b`` is 1 / phi_a for b = a, and else 0. policy: phi; taken: 1 for the
    action taken; ratios, action_values: float32 [T, K, A]; targets: Q^ret of that action, [T, K].
    """
    values = tf.reduce_sum(policy * action_values, axis=-1, keepdims=True)
    weights = taken * tf.minimum(largest, ratios) * (targets[..., tf.newaxis] - values)
    corrections = policy * correction_of(ratios, largest) * (action_values - values)
    return (weights + corrections) / floored(policy)


def gradient_of_entropy(policy: tf.Tensor) -> tf.Tensor:
    """Return the gradient of the entropy by probabilities [..., A]: ``-log phi - 1``."""
    return -tf.math.log(floored(policy)) - 1.0


def floored(policy: tf.Tensor) -> tf.Tensor:
    """Return probabilities that can be divided by."""
    return tf.maximum(policy, LEAST_PROBABILITY)


def within_region(gradient: tf.Tensor, towards: tf.Tensor, most: float | None) -> tf.Tensor:
    """Return z*, the direction nearest to ``gradient`` that keeps near the average policy.

    Equation (12). gradient: float32 [..., N], by the distribution's statistics in each state;
    towards: k, the gradient of the KL divergence from the average policy; most: delta. Where the
    constraint holds, z* is the gradient itself; else the part along k is shortened.
    """
    if most is None:
        return tf.stop_gradient(gradient)
    excess = tf.reduce_sum(towards * gradient, axis=-1, keepdims=True) - most
    size = tf.reduce_sum(tf.square(towards), axis=-1, keepdims=True)
    return tf.stop_gradient(gradient - tf.maximum(0.0, excess) / tf.maximum(size, 1e-12) * towards)


def mean(numbers: tf.Tensor, counted: tf.Tensor) -> tf.Tensor:
    """Return the mean of numbers [T, K] of rows that are ``counted`` [T, K], 1 or 0."""
    return tf.reduce_sum(counted * numbers) / tf.maximum(tf.reduce_sum(counted), 1.0)


def terms_of(
    batch: GraphRollouts,
    gradient: tf.Tensor,
    direction: tf.Tensor,
    value_loss: tf.Tensor,
    values: tf.Tensor,
    ratio: tf.Tensor,
    entropy: tf.Tensor,
) -> Terms:
    """Return means over a batch by name; ``constrained``: the part that the trust region turns."""
    is_turned = tf.reduce_any(gradient != direction, axis=-1)
    means = {
        "value loss": value_loss,
        "value": values,
        "importance weight": ratio,
        "entropy": entropy,
        "constrained": tf.cast(is_turned, tf.float32),
    }
    return {name: mean(numbers, batch.on_policy) for name, numbers in means.items()}
