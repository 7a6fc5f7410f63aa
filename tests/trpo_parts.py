"""TRPO's learner with a softmax of weighted sums, whose step numpy can write out."""

from dataclasses import replace

import numpy as np
from rollout_samples import random_rollouts

from relaax.assembly.parts import Home

FEATURES, ACTIONS, KL_TARGET = 4, 3, 0.05

#: The policy's parameters come first: a softmax of the states' weighted sums.
SIZE = (FEATURES + 1) * ACTIONS

SECTION = {
    "state_size": [FEATURES], "action_size": ACTIONS, "network": [], "rollouts_per_batch": 4,
    "episode_len": 6, "kl_target": KL_TARGET, "seed": 5,
}  # fmt: skip


def learner_of(trpo, **keys):
    """The learner of this section with other keys."""
    builder = trpo.Builder(trpo.Config({**SECTION, **keys}))
    return builder.learner(Home(1, np.random.default_rng(0), None))


def rollouts_for(learner, count=4):
    """Rollouts whose actions were drawn with the learner's own parameters."""
    rollouts = random_rollouts(learner.network, ACTIONS, count, steps=6)
    log_p = log_softmax(rollouts.observations[:-1], learner.values()["default"][:SIZE])
    chosen = np.take_along_axis(log_p, rollouts.actions[..., np.newaxis], -1)[..., 0]
    return replace(rollouts, extras={"log_probability": chosen.astype(np.float32)})


def features(states):
    """States, and a 1 for the bias."""
    return np.concatenate([states, np.ones((*states.shape[:-1], 1))], axis=-1)


def log_softmax(states, parameters):
    """The policy's log likelihoods of all actions."""
    outputs = features(states) @ parameters.reshape(FEATURES + 1, ACTIONS).astype(float)
    return outputs - np.log(np.exp(outputs).sum(-1, keepdims=True))


def targets_of(learner, rollouts):
    """Returns, and normalised advantages, with the values that the learner has."""
    from relaax.learning import returns_tf

    values = values_of(learner, rollouts)
    rows = rollouts.rewards, rollouts.terminated, rollouts.valid, np.float32(values)
    returns, advantages = returns_tf.n_step_targets(*rows, 0.99, 0.95)
    return returns.numpy(), returns_tf.normalized(advantages, rollouts.on_policy).numpy()


def values_of(learner, rollouts):
    """The values of all rows, the last one among them."""
    return features(rollouts.observations) @ learner.values()["default"][SIZE:]


class Batch:
    """The surrogate and the divergence of a batch, as functions of the policy's parameters."""

    def __init__(self, learner, rollouts):
        self.states, self.rollouts = rollouts.observations[:-1], rollouts
        self.old = learner.values()["default"][:SIZE].astype(float)
        self.advantages = targets_of(learner, rollouts)[1]
        self.log_old = log_softmax(self.states, self.old)

    def surrogate(self, parameters):
        log_p = log_softmax(self.states, parameters) - self.log_old
        ratios = np.exp(np.take_along_axis(log_p, self.rollouts.actions[..., np.newaxis], -1))
        own = self.rollouts.on_policy
        return (own * ratios[..., 0] * self.advantages).sum() / own.sum()

    def kl(self, parameters):
        new = log_softmax(self.states, parameters)
        each = (np.exp(self.log_old) * (self.log_old - new)).sum(-1)
        return (self.rollouts.valid * each).sum() / self.rollouts.valid.sum()
