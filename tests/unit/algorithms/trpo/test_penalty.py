"""PPO with L-BFGS: the penalised step beside scipy's, its rule, and the regression of values."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
import trpo_parts
from scipy.optimize import fmin_l_bfgs_b
from trpo_parts import KL_TARGET, SIZE, Batch, features, rollouts_for, targets_of, values_of

from relaax.learning.rollouts import ROLLOUTS


@pytest.fixture(name="learner_of")
def _learner_of(trpo):
    return lambda **keys: trpo_parts.learner_of(trpo, **{"optimizer": "lbfgs", **keys})


@pytest.fixture(name="penalty_tf")
def _penalty_tf(trpo):
    return importlib.import_module(f"{trpo.__name__}.penalty_tf")


class Penalised(Batch):
    """What modular_rl minimises."""

    def __init__(self, learner, rollouts, penalty, cutoff):
        super().__init__(learner, rollouts)
        self.penalty, self.cutoff = penalty, cutoff

    def loss(self, parameters):
        kl = self.kl(parameters)
        excess = (kl > 2 * KL_TARGET) * (kl - 2 * KL_TARGET)
        return self.penalty * kl + self.cutoff * excess**2 - self.surrogate(parameters)

    def best(self):
        return fmin_l_bfgs_b(self.loss, self.old, approx_grad=True, maxiter=200)[0]


@pytest.mark.parametrize(
    ("penalty", "cutoff"), [(5.0, 1000.0), (0.05, 1000.0), (0.05, 10.0), (0.5, 0.0)]
)
def test_a_step_is_to_the_best_parameters_for_surrogate_penalty_and_cutoff(
    learner_of, penalty, cutoff
):
    learner = learner_of(kl_penalty=penalty, kl_cutoff=cutoff, lbfgs_iterations=200)
    rollouts = rollouts_for(learner)
    expected = Penalised(learner, rollouts, penalty, cutoff)
    best = expected.best()
    (step,) = learner.steps({ROLLOUTS: rollouts})
    found = learner.values()["default"][:SIZE]
    assert expected.loss(found) == pytest.approx(expected.loss(best), abs=1e-4)
    assert expected.loss(best) < expected.loss(expected.old) - 1e-3
    assert step.terms["kl"] == pytest.approx(expected.kl(best), rel=0.02)
    assert step.terms["surrogate"] == pytest.approx(
        expected.surrogate(best) - expected.surrogate(expected.old), rel=0.02
    )


def test_the_cutoff_counts_where_a_batch_moves_the_policy_farther_than_twice_the_target(learner_of):
    moved = []
    for cutoff in (0.0, 1000.0):
        learner = learner_of(kl_penalty=0.05, kl_cutoff=cutoff, lbfgs_iterations=100)
        (step,) = learner.steps({ROLLOUTS: rollouts_for(learner)})
        moved.append(step.terms["kl"])
    assert moved[0] > 5 * KL_TARGET
    assert 2 * KL_TARGET < moved[1] < 2.2 * KL_TARGET


@pytest.mark.parametrize(
    ("kl", "expected"), [(0.0, 4.0), (0.0069, 4.0), (0.0071, 6.0), (0.0129, 6.0), (0.0131, 9.0)]
)
def test_the_penalty_follows_the_target_by_the_rule_of_modular_rl(penalty_tf, kl, expected):
    assert float(penalty_tf.adapted(6.0, kl, 0.01)) == pytest.approx(expected)


def test_the_penalty_stays_within_limits(penalty_tf):
    assert float(penalty_tf.adapted(1e-4, 0.0, 0.01)) == pytest.approx(1e-4)
    assert float(penalty_tf.adapted(1e4, 1.0, 0.01)) == pytest.approx(1e4)


def test_each_batch_counts_with_the_penalty_that_the_batch_before_has_left(learner_of):
    learner = learner_of(kl_penalty=0.05)
    rollouts = rollouts_for(learner)
    penalties = [next(learner.steps({ROLLOUTS: rollouts})).terms for _ in range(2)]
    assert penalties[0]["kl"] > 1.3 * KL_TARGET
    assert [terms["kl penalty"] for terms in penalties] == pytest.approx([0.05, 0.075])


def test_the_penalty_is_in_checkpoints(learner_of):
    learner, other = learner_of(kl_penalty=0.05), learner_of(kl_penalty=0.05)
    next(learner.steps({ROLLOUTS: rollouts_for(learner)}))
    other.restore(learner.state())
    (step,) = other.steps({ROLLOUTS: rollouts_for(other)})
    assert step.terms["kl penalty"] == pytest.approx(0.075)


def test_a_training_may_go_on_with_another_optimizer(learner_of):
    before = learner_of(optimizer="conjugate_gradients", value_minibatches=2)
    learner = learner_of(kl_penalty=0.05)
    learner.restore(before.state())
    (step,) = learner.steps({ROLLOUTS: rollouts_for(learner)})
    assert step.terms["kl penalty"] == pytest.approx(0.05)
    before.restore(learner.state())


def test_values_are_a_ridge_regression_of_returns_mixed_with_the_values_before(learner_of):
    learner = learner_of(value_mixing=0.3, lbfgs_iterations=100)
    rollouts = rollouts_for(learner)
    rewarded = replace(rollouts, rewards=5 * rollouts.rewards)
    returns, _ = targets_of(learner, rewarded)
    targets = 0.3 * returns + 0.7 * values_of(learner, rewarded)[:-1]
    is_valid = rewarded.valid > 0
    phi = features(rewarded.observations)[:-1][is_valid]
    matrix = phi.T @ phi / len(phi) + 1e-3 * np.eye(phi.shape[1])
    weights = np.linalg.solve(matrix, phi.T @ targets[is_valid] / len(phi))
    (step,) = learner.steps({ROLLOUTS: rewarded})
    np.testing.assert_allclose(learner.values()["default"][SIZE:], weights, rtol=1e-2, atol=1e-3)
    loss = np.square(phi @ weights - returns[is_valid]).mean() / 2
    assert step.terms["value loss"] == pytest.approx(loss, rel=1e-2)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"damping": 0.1}, "damping: no effect without optimizer: conjugate_gradients"),
        ({"value_passes": 3}, "value_passes: no effect without optimizer: conjugate_gradients"),
        (
            {"optimizer": "conjugate_gradients", "kl_cutoff": 10.0},
            "kl_cutoff: no effect without optimizer: lbfgs",
        ),
    ],
)
def test_a_key_of_the_other_optimizer_is_refused(learner_of, keys, message):
    with pytest.raises(ValueError, match=message):
        learner_of(**keys)


def test_a_batch_need_not_be_divided(learner_of):
    learner = learner_of(rollouts_per_batch=3)
    (step,) = learner.steps({ROLLOUTS: rollouts_for(learner, count=3)})
    assert step.terms["kl"] > 0
