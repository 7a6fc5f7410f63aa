"""Which gradients become updates: old ones, compensated ones, and means of several."""

from contextlib import ExitStack, closing

import numpy as np
import pytest
from processes import free_port
from shards import Shards, random_vectors, whole
from trained import SECTIONS, algorithm_of

from relaax.algorithm_base import Gradient, NullMetrics, NullSaver, Statistics
from relaax.parameters import Bridge, BridgeControl
from relaax.parameters.combining import (
    MOST_COMPENSATED,
    Combiner,
    CombineSection,
    DelayCompensation,
)
from relaax.parameters.optimizers import SGD
from relaax.parameters.parameter_store import ParameterStore

SIZE = 5


def vector(*numbers):
    return np.array(numbers, np.float32)


def store_of(combiner, size=2, filters=None, initial=0.0):
    length = size if filters is None else size + filters.length
    parameters = np.full(length, initial, np.float32)
    return ParameterStore(parameters, SGD(size, 0.0), lambda _: 1.0, filters, combiner)


class Sums:
    """Statistics that are added up."""

    length = 1

    def merge(self, statistics, added):
        statistics += added


class TestDelayCompensation:
    def test_a_gradient_moves_by_its_squares_with_a_constant_lambda(self):
        gradient, then, now = random_vectors(3, SIZE)
        found = DelayCompensation(0.04, None).compensated(gradient, then, now)
        expected = [
            g + 0.04 * g * g * (after - before)
            for g, before, after in zip(gradient, then, now, strict=True)
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    @pytest.mark.parametrize("decay", [None, 0.95])
    @pytest.mark.parametrize("moved", [0.0, 1.0])
    def test_a_gradient_stays_finite(self, decay, moved):
        gradient, then = vector(1e25, -1e25, 1), vector(0, 0, 0)
        found = DelayCompensation(2.0, decay).compensated(gradient, then, then + np.float32(moved))
        assert np.isfinite(found).all()

    def test_an_adaptive_lambda_is_divided_by_the_root_of_the_mean_square(self):
        compensation, mean_square = DelayCompensation(2.0, 0.95), np.zeros(SIZE)
        for gradient, then, now in random_vectors(12, SIZE).reshape(4, 3, SIZE):
            mean_square = 0.95 * mean_square + 0.05 * gradient.astype(np.float64) ** 2
            strength = 2.0 / np.sqrt(mean_square + 1e-7)
            expected = gradient + strength * gradient**2 * (now - then)
            found = compensation.compensated(gradient, then, now)
            np.testing.assert_allclose(found, expected, rtol=1e-4)

    def test_it_is_the_gradient_at_the_new_place_where_its_square_is_the_slope(self):
        """Of -log(w), whose gradient is -1/w and whose second derivative is its square."""
        then, now = vector(2.0), vector(2.02)
        found = DelayCompensation(1.0, None).compensated(-1 / then, then, now)
        error = abs(found + 1 / now)
        assert error < 0.02 * abs(1 / then - 1 / now)

    def test_nothing_is_added_where_nothing_has_moved(self):
        gradient, now = random_vectors(2, SIZE)
        found = DelayCompensation(2.0, 0.95).compensated(gradient, now, now)
        np.testing.assert_array_equal(found, gradient)


class TestAverage:
    def test_every_so_many_gradients_are_one_update_of_their_mean(self):
        store = store_of(Combiner(average_of=4))
        gradients = random_vectors(8, 2)
        for number, gradient in enumerate(gradients, 1):
            store.push(Gradient(gradient, steps=3))
            assert (store.version, store.global_t) == (number // 4, 3 * number)
        expected = -gradients[:4].mean(axis=0) - gradients[4:].mean(axis=0)
        np.testing.assert_allclose(store.pull().vector, expected, rtol=1e-5)

    def test_the_rate_of_an_update_is_that_of_the_step_of_its_last_gradient(self):
        store = ParameterStore(
            np.zeros(1, np.float32), SGD(1, 0.0), lambda step: 1 - step / 100, None, Combiner(2)
        )
        for _ in range(2):
            store.push(Gradient(vector(1), steps=40))
        np.testing.assert_allclose(store.pull().vector, [-0.6], rtol=1e-6)

    def test_a_sender_whose_gradient_waits_gets_the_values_that_there_are(self):
        store = store_of(Combiner(average_of=2))
        known = store.pull().version
        values = store.push(Gradient(vector(1, 1), known))
        assert values.version == known
        np.testing.assert_array_equal(values.vector, [0, 0])

    def test_a_sender_gets_no_values_once_the_training_is_over(self):
        store = store_of(Combiner(average_of=2))
        known = store.pull().version
        store.freeze()
        assert store.push(Gradient(vector(1, 1), known)).vector is None

    def test_statistics_of_filters_are_all_merged_with_the_update(self):
        store = store_of(Combiner(average_of=2), filters=Sums())
        for count in (3, 4):
            store.push(Gradient(vector(1, 1), statistics=[Statistics(vector(count))]))
        values = store.pull()
        np.testing.assert_array_equal(values.vector, [-1, -1, 7])
        assert values.version.number == 1

    def test_statistics_alone_do_not_wait(self):
        store = store_of(Combiner(average_of=2), filters=Sums())
        assert store.push(Statistics(vector(3))).vector.tolist() == [0, 0, 3]


class TestStaleness:
    def test_a_gradient_of_parameters_too_many_updates_ago_is_dropped_and_counted(self):
        said = []
        store = store_of(Combiner(max_staleness=2, on_dropped=said.append))
        old = store.pull().version
        for _ in range(2):
            store.push(Gradient(vector(1, 1), store.pull().version))
        store.push(Gradient(vector(1, 1), old, 5))
        assert (store.version, said) == (3, [])
        values = store.push(Gradient(vector(9, 9), old, 5))
        assert (store.version, store.global_t, said) == (3, 10, [1])
        np.testing.assert_array_equal(values.vector, [-3, -3])

    def test_the_statistics_of_a_dropped_gradient_come_with_the_next_update(self):
        store = store_of(Combiner(max_staleness=0), filters=Sums())
        old = store.pull().version
        store.push(Gradient(vector(1, 1), old))
        store.push(Gradient(vector(9, 9), old, statistics=[Statistics(vector(3))]))
        assert store.pull().vector.tolist() == [-1, -1, 0]
        values = store.push(Gradient(vector(1, 1), store.pull().version))
        assert values.vector.tolist() == [-2, -2, 3]

    def test_a_gradient_that_names_no_version_is_taken_for_new(self):
        store = store_of(Combiner(max_staleness=0))
        for _ in range(3):
            store.push(Gradient(vector(1, 1)))
        assert store.version == 3


class TestStore:
    def test_each_gradient_is_compensated_by_the_parameters_that_its_sender_had(self):
        store = store_of(Combiner(compensation=DelayCompensation(0.5, None)), initial=1.0)
        first = store.pull()
        second = store.push(Gradient(vector(1, 2), first.version))
        store.push(Gradient(vector(2, 1), second.version))  # of the present ones: as it is
        np.testing.assert_allclose(store.pull().vector, [-2, -2])
        values = store.push(Gradient(vector(2, 1), first.version))
        moved = vector(-2, -2) - vector(1, 1)
        expected = vector(-2, -2) - (vector(2, 1) + 0.5 * vector(4, 1) * moved)
        np.testing.assert_allclose(values.vector, expected)

    def test_compensated_gradients_are_averaged(self):
        store = store_of(Combiner(2, compensation=DelayCompensation(0.5, None)), size=1)
        old = store.pull().version
        for _ in range(2):
            store.push(Gradient(vector(1), old))  # nothing has moved
        store.push(Gradient(vector(1), old))  # 1 + 0.5 * (-1 - 0)
        values = store.push(Gradient(vector(2), store.pull().version))
        np.testing.assert_allclose(values.vector, [-1 - (0.5 + 2) / 2])

    def test_the_statistics_behind_the_parameters_are_not_compensated(self):
        combiner = Combiner(compensation=DelayCompensation(0.5, None))
        store = store_of(combiner, size=1, filters=Sums())
        old = store.pull().version
        store.push(Gradient(vector(1), old, statistics=[Statistics(vector(5))]))
        values = store.push(Gradient(vector(1), old, statistics=[Statistics(vector(2))]))
        np.testing.assert_allclose(values.vector, [-1.5, 7])

    def test_no_more_versions_are_remembered_than_may_be_asked_for(self):
        combiner = Combiner(1, 3, DelayCompensation(0.5, None))
        store = store_of(combiner)
        for _ in range(20):
            store.push(Gradient(vector(1, 1), store.pull().version))
        assert combiner.remembered == [17, 18, 19, 20]

    def test_nothing_is_remembered_without_compensation(self):
        combiner = Combiner(average_of=2, max_staleness=3)
        store_of(combiner).pull()
        assert combiner.remembered == []


class TestSection:
    def test_delay_compensation_limits_what_is_remembered(self):
        combiner = CombineSection.model_validate({"delay_compensation": True}).make(print)
        store = store_of(combiner)
        for _ in range(MOST_COMPENSATED + 5):
            store.push(Gradient(vector(0, 0), store.pull().version))
        assert len(combiner.remembered) == MOST_COMPENSATED + 1

    def test_its_defaults_are_the_papers(self):
        section = CombineSection.model_validate({"delay_compensation": True})
        assert section.delay_compensation.model_dump() == {
            "strength": 2.0, "adaptive": True, "decay": 0.95,
        }  # fmt: skip

    def test_false_switches_it_off(self):
        section = CombineSection.model_validate({"delay_compensation": False})
        assert section.delay_compensation is None

    def test_a_decay_is_refused_with_a_constant_lambda(self):
        with pytest.raises(ValueError, match="decay: no effect without adaptive: true"):
            CombineSection.model_validate({"delay_compensation": {"adaptive": False, "decay": 0.5}})

    def test_a_constant_lambda_is_given(self):
        with pytest.raises(ValueError, match="adaptive: false needs a strength"):
            CombineSection.model_validate({"delay_compensation": {"adaptive": False}})

    @pytest.mark.parametrize(
        ("name", "keys"),
        [
            ("da3c", {"learner": "process"}),
            ("da3c", {"learner": "process", "learners": {"count": 2}}),
            ("ppo", {}),
            ("dqn", {}),
            ("sac", {"learners": {"count": 2, "gradients": "synchronous"}}),
        ],
    )
    def test_it_is_refused_where_no_single_gradients_come(self, name, keys):
        with pytest.raises(ValueError, match="combine_gradients: no effect without gradients"):
            algorithm_of(name, {**SECTIONS[name], **keys, "combine_gradients": {"average_of": 2}})

    @pytest.mark.parametrize(
        ("name", "keys"),
        [
            ("da3c", {}),
            ("ppo", {"learner": "worker"}),
            ("dqn", {"learners": {"count": 2, "gradients": "asynchronous"}}),
        ],
    )
    def test_it_is_taken_where_they_come(self, name, keys):
        algorithm_of(name, {**SECTIONS[name], **keys, "combine_gradients": {"average_of": 2}})


class Scalars(NullMetrics):
    def __init__(self):
        self.values = []

    def scalar(self, name, y, x=None):
        self.values.append((name, y))


def test_workers_gradients_are_combined_by_the_served_algorithm():
    """Three workers of DA3C over gRPC: one is slow, and then too slow."""
    keys = {"max_staleness": 1, "delay_compensation": {"strength": 0.3, "adaptive": False}}
    section = {
        **SECTIONS["da3c"], "SGD": {"momentum": 0.0}, "initial_learning_rate": 1.0,
        "max_global_step": 1e12, "combine_gradients": {**keys, "average_of": 2},
    }  # fmt: skip
    algorithm, config = algorithm_of("da3c", section)
    scalars, address = Scalars(), f"127.0.0.1:{free_port()}"
    service = algorithm.ParameterServer(config, NullSaver(), scalars).bridge()
    server = BridgeControl().start_parameter_server(address, service)
    with ExitStack() as stack:
        stack.callback(server.stop, 0)
        one, two, slow = (stack.enter_context(closing(Bridge(address))) for _ in range(3))
        first = slow.pull()
        gradients = random_vectors(5, first.vector.size)
        one.push(Gradient(gradients[0], one.pull().version, 5))
        second = two.push(Gradient(gradients[1], two.pull().version, 5))
        now = first.vector - (gradients[0] + gradients[1]) / 2
        np.testing.assert_allclose(second.vector, now, rtol=1e-4, atol=1e-5)
        waiting = slow.push(Gradient(gradients[2], first.version, 5))
        assert waiting.version == second.version
        third = one.push(Gradient(gradients[3], one.pull().version, 5))
        moved = second.vector - first.vector
        compensated = gradients[2] + 0.3 * gradients[2] ** 2 * moved
        now = second.vector - (compensated + gradients[3]) / 2
        np.testing.assert_allclose(third.vector, now, rtol=1e-4, atol=1e-5)
        last = slow.push(Gradient(gradients[4], first.version, 5))
        assert (last.version.number, last.global_t) == (2, 25)
        np.testing.assert_array_equal(last.vector, third.vector)
    assert ("parameter server/stale gradients", 1) in scalars.values


def test_shards_combine_as_one_parameter_server_does():
    initial, *gradients = random_vectors(9, SIZE)

    def combiner():
        return Combiner(2, 2, DelayCompensation(0.1, 0.95))

    def learn(service):
        old = service.pull()
        for gradient in gradients[:5]:
            values = service.push(Gradient(gradient, service.pull().version, 1))
        for gradient in gradients[5:]:
            values = service.push(Gradient(gradient, old.version, 1))
            old = values if values.version.number > 3 else old
        return values

    expected = learn(whole(initial, SGD(SIZE, 0.0), combiner=combiner()).bridge())
    shards = Shards(2, initial, lambda size: SGD(size, 0.0), make_combiner=combiner)
    with closing(shards), shards.bridge() as bridge:
        shards.wait_for_all()
        values = learn(bridge)
    assert values.vector.tobytes() == expected.vector.tobytes()
    assert (values.version.number, values.global_t) == (expected.version.number, 8)
