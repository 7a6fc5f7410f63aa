"""TRPO's step beside numpy: gradient, Fisher matrix, trust region and line search of a softmax."""

from dataclasses import replace

import numpy as np
import pytest
import trpo_parts
from rollout_samples import random_rollouts
from trpo_parts import ACTIONS, KL_TARGET, SIZE, Batch, features, rollouts_for

from relaax.learning.rollouts import ROLLOUTS

DAMPING = 0.1

SECTION = {
    **trpo_parts.SECTION, "damping": DAMPING, "conjugate_steps": 30, "value_minibatches": 2,
}  # fmt: skip


@pytest.fixture(name="learner_of")
def _learner_of(trpo):
    return lambda **keys: trpo_parts.learner_of(trpo, **{**SECTION, **keys})


class Expected(Batch):
    """The step that the paper asks for, of a policy whose Fisher matrix can be written out."""

    def longest(self):
        """The natural gradient, as long as the quadratic model of the KL divergence allows."""
        phi, p = features(self.states), np.exp(self.log_old)
        valid, own = self.rollouts.valid, self.rollouts.on_policy
        wanted = np.eye(ACTIONS)[self.rollouts.actions] - p
        gradient = np.einsum("tk,tkf,tka->fa", own * self.advantages, phi, wanted) / own.sum()
        spread = np.einsum("tka,ab->tkab", p, np.eye(ACTIONS)) - np.einsum("tka,tkb->tkab", p, p)
        fisher = np.einsum("tk,tkf,tkg,tkab->fagb", valid, phi, phi, spread) / valid.sum()
        matrix = fisher.reshape(SIZE, SIZE) + DAMPING * np.eye(SIZE)
        direction = np.linalg.solve(matrix, gradient.reshape(-1))
        return direction * np.sqrt(2 * KL_TARGET / (direction @ matrix @ direction))

    def found(self):
        """The first part of the longest step that improves within the region."""
        longest = self.longest()
        for part in 0.8 ** np.arange(10):
            parameters = self.old + part * longest
            is_near = self.kl(parameters) <= KL_TARGET
            if is_near and self.surrogate(parameters) > self.surrogate(self.old):
                return part, parameters
        return 0.0, self.old


def test_a_step_is_the_natural_gradient_as_far_as_the_line_search_lets_it(learner_of):
    learner = learner_of()
    rollouts = rollouts_for(learner)
    expected = Expected(learner, rollouts)
    part, parameters = expected.found()
    (step,) = learner.steps({ROLLOUTS: rollouts})
    assert part > 0
    assert step.terms["step"] == pytest.approx(part)
    np.testing.assert_allclose(learner.values()["default"][:SIZE], parameters, rtol=2e-3, atol=2e-3)
    assert step.terms["kl"] == pytest.approx(expected.kl(parameters), rel=2e-2)
    assert step.terms["kl"] <= KL_TARGET


def test_where_no_part_of_the_step_is_good_the_policy_stays(learner_of):
    learner = learner_of()
    before, rollouts = learner.values()["default"], rollouts_for(learner)
    others_were_executed = replace(rollouts, on_policy=np.zeros_like(rollouts.on_policy))
    (step,) = learner.steps({ROLLOUTS: others_were_executed})
    assert step.terms["step"] == 0
    np.testing.assert_array_equal(learner.values()["default"][:SIZE], before[:SIZE])
    assert (learner.values()["default"][SIZE:] != before[SIZE:]).all()


def test_values_alone_are_fitted_to_the_returns(learner_of):
    learner = learner_of(value_passes=30, value_minibatches=1, trace_decay=1.0)
    rollouts = rollouts_for(learner)
    losses = [next(learner.steps({ROLLOUTS: rollouts})).terms["value loss"] for _ in range(2)]
    assert losses[1] < losses[0]


def test_rollouts_without_steps_may_be_missing_from_a_batch(learner_of):
    learner = learner_of()
    (step,) = learner.steps({ROLLOUTS: rollouts_for(learner, count=3)})
    assert step.terms["step"] > 0


@pytest.mark.parametrize("keys", [{"value_minibatches": 2}, {"optimizer": "lbfgs"}])
def test_shared_layers_are_moved_by_the_policy_alone(trpo, keys):
    learner = trpo_parts.learner_of(trpo, network=[{"dense": 5}], **keys)
    manifest, before = learner.network.manifest, learner.values()["default"]
    rollouts = random_rollouts(learner.network, ACTIONS, 4, steps=6)
    rollouts = replace(rollouts, on_policy=np.zeros_like(rollouts.on_policy))
    (step,) = learner.steps({ROLLOUTS: rollouts})
    assert step.terms["kl"] == 0
    old, new = manifest.unpack(before), manifest.unpack(learner.values()["default"])
    changed = {name for name in old if not np.array_equal(old[name], new[name])}
    assert changed == {"value/kernel", "value/bias"}


def test_a_batch_is_divided_evenly(trpo):
    with pytest.raises(ValueError, match="value_minibatches: the 4 rollouts"):
        trpo.Config({**SECTION, "value_minibatches": 3})


@pytest.mark.parametrize("key", ["learners", "policy_clip", "Adam"])
def test_keys_of_other_methods_are_refused(trpo, key):
    with pytest.raises(ValueError, match=f"{key}: no such key"):
        trpo.Config({**SECTION, key: 1})
