"""Small policies that answer for other processes."""

import numpy as np
import pytest
from learning_parts import SMALL, SMALL_COLUMNS, small_policy, small_values, unpack

from relaax.acting.policies import PulledPolicies
from relaax.acting.remote import LocalInference, forms_of
from relaax.algorithm_base.inference import Question
from relaax.learning.distributions import Categorical
from relaax.learning.networks.numpy_policy import NumpyPolicy

#: Seeds of the parameters of policies that are not the default one.
SEEDS = {"first": 8, "second": 11}


class OneName:
    """The values of one named policy."""

    def __init__(self, name: str) -> None:
        self._name = name

    def pull(self, known=None, policy="default"):
        return small_values(number=SEEDS[self._name], seed=SEEDS[self._name])


class Evaluated:
    """A model that notes how many rows it has evaluated, and may be held up."""

    def __init__(self):
        self.rows, self._model = [], NumpyPolicy(SMALL, Categorical(2))

    def batch_size(self, count):
        return count

    def choose(self, parameters, observations, recurrent_state, noise):
        self.rows.append(len(noise))
        self.while_evaluating()
        return self._model.choose(parameters, observations, recurrent_state, noise)

    def while_evaluating(self):
        """What happens meanwhile: nothing, unless a test says so."""


@pytest.fixture
def model():
    return Evaluated()


@pytest.fixture
def local(model):
    policies = PulledPolicies(small_policy(), OneName, unpack, interval_s=60.0)
    local = LocalInference(model, policies, forms_of(SMALL_COLUMNS, Categorical(2)), lambda: 321)
    yield local
    local.close()


@pytest.fixture
def ask():
    """Return a question of some environments, another one for each seed."""

    def question(count=2, seed=0, policy="default"):
        random = np.random.default_rng(seed)
        return Question(
            policy,
            random.normal(size=(count, 2)).astype(np.float32),
            np.zeros((2, count, 0), np.float32),
            Categorical(2).noise(random, count),
        )

    return question
