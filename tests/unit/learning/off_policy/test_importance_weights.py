"""Transitions that are drawn more often count less; Schaul et al. 2016, section 3.4."""

import numpy as np
import pytest

from relaax.learning.off_policy import OffPolicyLearner
from relaax.learning.off_policy.settings import PrioritySection
from relaax.replay.table import Sample


class NoUpdate:
    """Learns nothing."""

    policy = np.zeros(1, np.float32)

    def __call__(self, batch, number):
        return np.ones(len(batch.weights), np.float32), {}

    def state(self):
        return {}

    def restore(self, state):
        pass


def learner_with(section):
    return OffPolicyLearner(NoUpdate(), "all", 3, np.zeros, section)


PROBABILITIES = np.array([0.5, 0.1, 0.05])


def sample():
    zeros = np.zeros(3, np.float32)
    columns = {
        "observation": zeros, "next_observation": zeros, "action": zeros, "return": zeros,
        "discount": zeros,
    }  # fmt: skip
    return Sample(np.arange(3), PROBABILITIES, columns, items=20, least_probability=0.02)


def test_all_count_alike_without_priorities():
    np.testing.assert_array_equal(learner_with(None).prepare(sample()).weights, np.ones(3))


@pytest.mark.parametrize(("updates", "beta"), [(0, 0.4), (5, 0.7), (10, 1.0), (20, 1.0)])
def test_weights_correct_more_and_more(updates, beta):
    learner = learner_with(PrioritySection.model_validate({"beta": 0.4, "beta_updates": 10}))
    for _ in range(updates):
        list(learner.steps({"all": learner.prepare(sample())}))
    weights = (20 * PROBABILITIES) ** -beta
    expected = weights / (20 * 0.02) ** -beta
    np.testing.assert_allclose(learner.prepare(sample()).weights, expected, rtol=1e-5)


def test_the_count_of_updates_is_in_the_state():
    learner = learner_with(PrioritySection.model_validate({"beta_updates": 10}))
    for _ in range(10):
        list(learner.steps({"all": learner.prepare(sample())}))
    restored = learner_with(PrioritySection.model_validate({"beta_updates": 10}))
    restored.restore(learner.state())
    expected = 0.02 / PROBABILITIES
    np.testing.assert_allclose(restored.prepare(sample()).weights, expected, rtol=1e-5)
