"""Surreal's learner: its hooks, and what is saved of it."""

import numpy as np
import pytest

from relaax.algorithm_base import Step
from relaax.compat.surreal import Config, Learner
from relaax.compat.surreal.algorithm import TABLE
from relaax.parameters.optimizers import Adam, AdamSettings
from relaax.replay.table import Sample

CONFIG = Config({"state_size": [1], "action_size": 2, "batch_size": 3, "seed": 5})

SAMPLE = Sample(
    keys=np.arange(3), probabilities=np.ones(3) / 3, columns={"return": np.array([1.0, 2.0, 3.0])},
    items=3, least_probability=1 / 3,
)  # fmt: skip


class Model:
    def __init__(self):
        self.weights = [np.zeros(2, np.float32)]

    def get_weights(self):
        return self.weights

    def set_weights(self, weights):
        self.weights = [part.copy() for part in weights]


class Counting(Learner):
    """Adds the returns of each batch to all that it has."""

    said = None

    def __init__(self, config, seed):
        super().__init__(config, seed)
        self.q, self.target = np.zeros(2, np.float32), np.zeros(2, np.float32)
        self.model, self.optimizer = Model(), Adam(2, AdamSettings())
        self.tables = {"visits": np.zeros(3)}
        self.rate, self.batches = 0.5, 0

    def learn(self, batch):
        self.q += batch["return"].sum()
        self.target += 2
        self.model.weights[0] += 3
        self.optimizer.apply(np.zeros(2, np.float32), np.ones(2, np.float32), 0.1)
        self.tables["visits"] += 4
        self.rate, self.batches = self.rate / 2, self.batches + 1
        return self.said

    def module_dict(self):
        return {"q": self.q}

    def checkpoint_attributes(self):
        return ["target", "model", "optimizer", "tables", "rate", "batches"]


def test_both_preprocessors_see_a_batch_before_it_is_learnt_from_in_their_order():
    class Preprocessing(Counting):
        def prefetch_preprocess(self, batch):
            return {"return": batch["return"] * 10}

        def preprocess_batch(self, batch):
            return {"return": batch["return"] + 1}

    learner = Preprocessing(CONFIG, 1)
    assert learner.prepare(SAMPLE)["return"].tolist() == [11, 21, 31]


def test_what_is_published_are_the_modules():
    learner = Counting(CONFIG, 1)
    list(learner.steps({TABLE: learner.prepare(SAMPLE)}))
    assert learner.values()["default"].tolist() == [6, 6]
    assert learner.values()["default"] is not learner.q


@pytest.mark.parametrize(
    ("said", "terms", "priorities"),
    [
        (None, {}, None),
        ({"loss": 2.0}, {"loss": 2.0}, None),
        (np.array([1.0, -2.0, 0.0]), {}, [1 + 1e-6, 2 + 1e-6, 1e-6]),
        (Step(1, {TABLE: np.ones(3)}, {"loss": 1.0}), {"loss": 1.0}, [1, 1, 1]),
    ],
)
def test_learn_may_say_nothing_numbers_errors_or_both(said, terms, priorities):
    learner = Counting(CONFIG, 1)
    learner.said = said
    (result,) = learner.steps({TABLE: learner.prepare(SAMPLE)})
    assert result.terms == terms
    assert result.priorities.keys() == ({TABLE} if priorities else set())
    if priorities is not None:
        assert result.priorities[TABLE].tolist() == pytest.approx(priorities)


def test_a_learner_goes_on_from_what_was_saved():
    learner, other = Counting(CONFIG, 1), Counting(CONFIG, 1)
    list(learner.steps({TABLE: learner.prepare(SAMPLE)}))
    saved = learner.state()
    list(learner.steps({TABLE: learner.prepare(SAMPLE)}))
    arrays = other.q, other.target
    other.restore(saved)
    assert other.q is arrays[0]
    assert other.target is arrays[1]
    assert other.q.tolist() == [6, 6]
    assert other.target.tolist() == [2, 2]
    assert other.model.weights[0].tolist() == [3, 3]
    assert other.optimizer.steps.tolist() == [1]
    assert other.tables["visits"].tolist() == [4, 4, 4]
    assert (other.rate, other.batches) == (0.25, 1)
    list(other.steps({TABLE: other.prepare(SAMPLE)}))
    for name, part in learner.state().items():
        np.testing.assert_array_equal(part, other.state()[name])


def test_the_shapes_of_a_state_are_those_of_a_new_learner():
    learner, new = Counting(CONFIG, 1), Counting(CONFIG, 2)
    list(learner.steps({TABLE: learner.prepare(SAMPLE)}))
    found = {name: (part.shape, part.dtype) for name, part in learner.state().items()}
    assert found == {name: (part.shape, part.dtype) for name, part in new.state().items()}


def test_what_a_learner_draws_depends_on_its_seed():
    first, same, other = (Counting(CONFIG, seed).random.random() for seed in (1, 1, 2))
    assert first == same != other


def test_a_batch_has_the_configured_size():
    assert Counting(CONFIG, 1).inputs[TABLE].batch_size == 3
