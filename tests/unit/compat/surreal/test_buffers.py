"""Surreal's buffers: their hooks, and what they draw."""

import numpy as np
import pytest
from replay_cases import steps

from relaax.compat.surreal import Config, FIFOBuffer, Learner, PrioritizedBuffer, UniformBuffer
from relaax.compat.surreal.algorithm import TABLE, SurrealAlgorithm
from relaax.compat.surreal.experience import columns_of
from relaax.learning.steps import schema_of
from relaax.replay.replay import NotReady


def config_of(**keys):
    return Config({
        "state_size": [1], "action_size": 3, "memory_size": 256, "sampling_start_size": 10,
        "batch_size": 4, **keys,
    })  # fmt: skip


class Filled:
    """A buffer in a replay, and a writer of episodes whose rewards count from 1."""

    def __init__(self, buffer, **keys):
        class Noted(buffer):
            def __init__(table, *arguments, **named):  # noqa: N805 - self is the other one
                super().__init__(*arguments, **named)
                self.buffer = table

        config = config_of(**keys)
        algorithm = SurrealAlgorithm(None, Noted, None)
        self.replay = algorithm.replay_spec(config).make(np.random.default_rng(1), 60.0)
        self._schema = schema_of(columns_of(config))
        self.replay.open_writer("actor", self._schema)
        self._next = 0

    def play(self, length):
        _, flags = steps(self._next, length)
        rows = self._schema.rows(length)
        rows["reward"][:] = np.arange(1, length + 1)
        rows["observation"][:, 0] = np.arange(length)
        self._next = self.replay.append("actor", 0, self._next, rows, flags)

    def sample(self, count=4):
        return self.replay.sample(TABLE, count, 0.0)


class Weighing(Learner):
    def module_dict(self):
        return {"nothing": np.zeros(1, np.float32)}

    def learn(self, batch):
        return None


def rewards_in(sample):
    return sample.columns["return"].tolist()


class TestUniformBuffer:
    def test_nothing_is_drawn_before_there_is_enough(self):
        filled = Filled(UniformBuffer)
        filled.play(9)
        with pytest.raises(NotReady):
            filled.sample()
        filled.play(1)
        assert len(rewards_in(filled.sample())) == 4

    def test_experiences_are_drawn_with_replacement(self):
        filled = Filled(UniformBuffer)
        filled.play(10)
        assert len(rewards_in(filled.sample(100))) == 100

    def test_n_steps_are_summed_with_the_discount(self):
        filled = Filled(UniformBuffer, n_step=2, gamma=0.5)
        filled.play(10)
        assert set(rewards_in(filled.sample(200))) <= {
            *(n + 0.5 * (n + 1) for n in range(1, 10)),
            10.0,
        }

    def test_batches_for_each_step_hold_back_what_runs_ahead(self):
        filled = Filled(UniformBuffer, batches_per_step=1)
        filled.play(10)
        batches = 0
        while not filled.buffer.holds_back(4):
            filled.sample()
            batches += 1
        assert batches == 16

    def test_a_learner_that_returns_errors_may_use_it(self):
        filled = Filled(UniformBuffer)
        filled.play(10)
        sample = filled.sample()
        assert filled.replay.update_priorities(TABLE, sample.keys, np.ones(4)) == 0


class TestFIFOBuffer:
    def test_each_experience_is_handed_out_once_and_in_order(self):
        filled = Filled(FIFOBuffer)
        filled.play(9)
        assert rewards_in(filled.sample()) == [1, 2, 3, 4]
        assert rewards_in(filled.sample()) == [5, 6, 7, 8]
        with pytest.raises(NotReady):
            filled.sample()

    def test_more_than_there_is_cannot_be_drawn_whatever_the_batch_size(self):
        filled = Filled(FIFOBuffer)
        filled.play(5)
        with pytest.raises(NotReady):
            filled.sample(6)

    def test_where_it_is_full_the_writer_waits_and_nothing_is_dropped(self):
        filled = Filled(FIFOBuffer, memory_size=8)
        filled.play(8)
        with pytest.raises(NotReady, match="8 items wait for it, of at most 8"):
            filled.play(4)
        filled.sample()
        filled.play(4)
        assert rewards_in(filled.sample(8)) == [5, 6, 7, 8, 1, 2, 3, 4]

    def test_with_a_remover_the_oldest_leave_and_no_writer_waits(self):
        class Dropping(FIFOBuffer):
            remover = "fifo"

        filled = Filled(Dropping, memory_size=8)
        filled.play(8)
        filled.play(4)
        assert filled.buffer.counts.removed == 4
        assert rewards_in(filled.sample(8)) == [5, 6, 7, 8, 1, 2, 3, 4]

    def test_a_batch_larger_than_the_memory_does_come(self):
        filled = Filled(FIFOBuffer, memory_size=2, batch_size=8)
        for _ in range(4):
            filled.play(2)
        assert len(rewards_in(filled.sample(8))) == 8


class TestPrioritizedBuffer:
    def test_errors_decide_what_is_drawn(self):
        filled = Filled(PrioritizedBuffer, alpha=1.0)
        filled.play(10)
        keys = np.unique(filled.sample(200).keys)
        filled.replay.update_priorities(TABLE, keys, np.array([1.0] + [0.0] * 9))
        assert len(set(rewards_in(filled.sample(100)))) == 1

    def test_its_weights_undo_what_priorities_do(self):
        filled = Filled(PrioritizedBuffer, alpha=1.0, beta=1.0)
        filled.play(10)
        keys = np.unique(filled.sample(200).keys)
        filled.replay.update_priorities(TABLE, keys, np.arange(1.0, 11.0))
        sample = filled.sample(200)
        weights = Weighing(filled.buffer.config, 1).prepare(sample)["weight"]
        expected = 1 / (10 * sample.probabilities)
        np.testing.assert_allclose(weights, expected / (55 / 10), rtol=1e-6)

    @pytest.mark.parametrize("buffer", [UniformBuffer, FIFOBuffer, PrioritizedBuffer])
    def test_where_all_are_drawn_alike_weights_are_one(self, buffer):
        filled = Filled(buffer)
        filled.play(10)
        weights = Weighing(filled.buffer.config, 1).prepare(filled.sample())["weight"]
        assert weights.tolist() == [1.0] * 4


class TestHooks:
    def test_what_insert_does_not_hand_on_is_never_drawn(self):
        class Choosy(UniformBuffer):
            def insert(self, items):
                earned = self.read(items)["return"]
                super().insert(items[earned > 5])

        filled = Filled(Choosy, sampling_start_size=1)
        filled.play(10)
        assert len(filled.buffer) == 5
        assert set(rewards_in(filled.sample(100))) <= {6, 7, 8, 9, 10}

    def test_sample_may_add_columns(self):
        class Doubling(UniformBuffer):
            def sample(self, batch_size):
                sample = super().sample(batch_size)
                sample.columns["twice"] = 2 * sample.columns["return"]
                return sample

        filled = Filled(Doubling)
        filled.play(10)
        columns = filled.sample().columns
        np.testing.assert_array_equal(columns["twice"], 2 * columns["return"])

    def test_the_start_condition_decides_and_what_waits_for_it_is_not_held_up(self):
        class Patient(UniformBuffer):
            def start_sample_condition(self):
                return len(self) >= 100

        filled = Filled(Patient, batches_per_step=1)
        for _ in range(9):
            filled.play(11)
        with pytest.raises(NotReady):
            filled.sample()
        filled.play(1)
        assert filled.sample()

    def test_evict_forgets_and_is_called_once_its_interval_is_over(self):
        class Forgetful(UniformBuffer):
            evict_interval_s = 1e-9

            def evict(self):
                self.remove(self.older_than(4))

        filled = Filled(Forgetful, sampling_start_size=1)
        filled.play(10)
        assert len(filled.buffer) == 4
        assert filled.buffer.counts.evicted == 6
        assert set(rewards_in(filled.sample(100))) == {7, 8, 9, 10}

    def test_without_an_interval_evict_is_not_called(self):
        class Never(UniformBuffer):
            def evict(self):
                raise AssertionError

        Filled(Never).play(20)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [({"batch_sizes": 3}, "batch_size"), ({"action_size": [2, 3]}, "action_size")],
)
def test_a_key_that_cannot_be_used_is_named(keys, reason):
    with pytest.raises(ValueError, match=reason):
        config_of(**keys)
