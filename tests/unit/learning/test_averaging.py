"""Updates that are the mean of several learners' gradients."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from relaax.algorithm_base import Gradient, Version
from relaax.parameters.averaging import Averager, AveragingService
from relaax.parameters.optimizers import SGD, Adam, AdamSettings
from relaax.parameters.optimizers.optimizer import OptimizerOfParts, Part
from relaax.parameters.parameter_store import ParameterStore
from relaax.telemetry.metrics import NullMetrics

#: Of a wait that must not end by itself.
FOR_EVER_S = 60.0


def store_of(size=2):
    return ParameterStore(np.zeros(size, np.float32), SGD(size, 0.0), lambda _: 1.0)


def vector(*numbers):
    return np.array(numbers, np.float32)


def contribute_all(averager, gradients, version=0):
    with ThreadPoolExecutor(len(gradients)) as threads:
        done = [threads.submit(averager.contribute, Gradient(g), version) for g in gradients]
        for each in done:
            each.result(30)


class TestRounds:
    def test_an_update_is_the_mean_of_all_learners_gradients(self):
        store = store_of()
        averager = Averager(store, 3, FOR_EVER_S)
        contribute_all(averager, [vector(1, 0), vector(2, 3), vector(3, 3)])
        values = store.pull()
        np.testing.assert_allclose(values.vector, [-2, -2])
        assert values.version.number == 1

    def test_rounds_follow_one_another(self):
        store = store_of()
        averager = Averager(store, 2, FOR_EVER_S)
        for version in range(5):
            contribute_all(averager, [vector(1, 1), vector(3, 1)], version)
        values = store.pull()
        np.testing.assert_allclose(values.vector, [-10, -5])
        assert values.version.number == 5

    def test_a_missing_learner_is_waited_for_once_and_again_when_it_is_back(self):
        store = store_of()
        averager = Averager(store, 2, 0.01)
        averager.contribute(Gradient(vector(1, 1)), 0)  # waits, and goes on alone
        averager.timeout_s = FOR_EVER_S
        averager.contribute(Gradient(vector(1, 1)), 1)  # does not wait
        assert store.version == 2
        averager.contribute(Gradient(vector(9, 9)), 0)  # the other one, with what it knew
        assert averager.late == 1
        np.testing.assert_allclose(store.pull().vector, [-2, -2])
        contribute_all(averager, [vector(1, 1), vector(3, 1)], version=2)
        np.testing.assert_allclose(store.pull().vector, [-4, -3])

    @pytest.mark.parametrize(
        ("gradient", "reason"), [(vector(1, 2, 3), "has shape"), (vector(1, np.nan), "not finite")]
    )
    def test_a_gradient_that_does_not_fit_is_refused_and_leaves_the_round_as_it_is(
        self, gradient, reason
    ):
        store = store_of()
        averager = Averager(store, 2, FOR_EVER_S)
        with pytest.raises(ValueError, match=reason):
            averager.contribute(Gradient(gradient), 0)
        contribute_all(averager, [vector(1, 0), vector(3, 0)])
        np.testing.assert_allclose(store.pull().vector, [-2, 0])

    def test_the_end_of_the_training_is_the_end_of_all_waiting(self):
        store = store_of()
        averager = Averager(store, 2, FOR_EVER_S)
        waits = threading.Thread(target=averager.contribute, args=(Gradient(vector(1, 1)), 0))
        waits.start()
        store.freeze()
        waits.join(30)
        assert not waits.is_alive()
        np.testing.assert_array_equal(store.pull().vector, [0, 0])


def test_the_service_returns_the_parameters_behind_the_round():
    store = store_of()
    service = AveragingService(store, NullMetrics(), Averager(store, 2, FOR_EVER_S))
    known = service.pull().version
    with ThreadPoolExecutor(2) as threads:
        found = [
            threads.submit(service.push, Gradient(gradient, known, 4))
            for gradient in (vector(1, 1), vector(3, 1))
        ]
        values = [each.result(30) for each in found]
    for each in values:
        assert each.version == Version(1)
        np.testing.assert_allclose(each.vector, [-2, -1])
    assert store.global_t == 8


def test_a_late_gradient_is_reported_once_though_others_wait_meanwhile():
    class Scalars(NullMetrics):
        def __init__(self):
            self.values = []

        def scalar(self, name, y, x=None):
            self.values.append((name, y))

    store, scalars = store_of(), Scalars()
    store.apply(vector(0, 0), 0)
    service = AveragingService(store, scalars, Averager(store, 2, FOR_EVER_S))
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(service.push, Gradient(vector(1, 1), Version(1), 4))
        service.push(Gradient(vector(9, 9), Version(0)))
        service.push(Gradient(vector(1, 1), Version(1)))
        waits.result(30)
    assert scalars.values == [("parameter server/late gradients", 1)]


def test_parts_move_as_optimisers_of_their_own_do():
    settings, random = AdamSettings(), np.random.default_rng(0)
    joined = OptimizerOfParts(
        {"first": Part(3, Adam(3, settings), 0.1), "second": Part(2, Adam(2, settings), 0.01)}
    )
    parameters = random.normal(size=5).astype(np.float32)
    alone = [parameters[:3].copy(), parameters[3:].copy()]
    optimizers = [Adam(3, settings), Adam(2, settings)]
    for _ in range(4):
        gradient = random.normal(size=5).astype(np.float32)
        joined.apply(parameters, gradient, 0.5)
        optimizers[0].apply(alone[0], gradient[:3], 0.05)
        optimizers[1].apply(alone[1], gradient[3:], 0.005)
    np.testing.assert_array_equal(parameters, np.concatenate(alone))
    np.testing.assert_array_equal(joined.slots()["adam/second/mean"], optimizers[1].mean)
    assert sorted(joined.slots())[:3] == [
        "adam/first/mean", "adam/first/mean_square", "adam/first/steps",
    ]  # fmt: skip
