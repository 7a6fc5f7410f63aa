"""The parameter server of the library: any optimiser's slots are saved by their names."""

from dataclasses import replace

import numpy as np
import pytest

from relaax.algorithm_base import (
    Checkpoint,
    CheckpointMismatch,
    Gradient,
    NullMetrics,
    Saver,
    Version,
)
from relaax.parameters.optimizers import SGD, Adam, AdamSettings
from relaax.parameters.parameter_server import ParameterServer, ParameterService
from relaax.parameters.parameter_store import ParameterStore


class Memory(Saver):
    """Keeps the latest checkpoint."""

    checkpoint = None

    def save(self, checkpoint):
        self.checkpoint = checkpoint

    def restore_latest(self):
        return self.checkpoint

    def location(self):
        return "memory"


class Momentum:
    """An optimiser with two slots: a velocity, and how many steps there were."""

    def __init__(self, size):
        self.velocity, self.count = np.zeros(size, np.float32), np.zeros(size, np.float32)

    def slots(self):
        return {"momentum/velocity": self.velocity, "momentum/count": self.count}

    def apply(self, parameters, gradient, learning_rate):
        self.velocity += gradient
        self.count += 1
        parameters -= learning_rate * self.velocity


def make(saver, size=3, fingerprint=None, max_global_step=100.0, optimizer=None, learns=True):
    optimizer = optimizer or Momentum(size)
    store = ParameterStore(np.zeros(size, np.float32), optimizer, lambda global_t: 0.5)
    service = ParameterService(store, NullMetrics())
    fingerprint = fingerprint or {"units": size}
    return ParameterServer(store, service, saver, fingerprint, max_global_step, learns)


def test_a_checkpoint_holds_parameters_and_slots_by_name():
    saver = Memory()
    server = make(saver)
    server.bridge().push(Gradient(np.ones(3, np.float32), Version(0), 7))
    server.save_checkpoint()
    tensors = {name: tensor.tolist() for name, tensor in saver.checkpoint.tensors.items()}
    assert tensors == {
        "parameters": [-0.5] * 3,
        "momentum/velocity": [1.0] * 3,
        "momentum/count": [1.0] * 3,
    }
    assert (saver.checkpoint.global_t, saver.checkpoint.version) == (7, 1)


def test_a_restored_optimiser_goes_on_where_it_was():
    saver = Memory()
    first = make(saver)
    first.bridge().push(Gradient(np.ones(3, np.float32), Version(0), 7))
    first.save_checkpoint()
    second = make(saver)
    second.restore_latest_checkpoint()
    for server in (first, second):
        server.bridge().push(Gradient(np.ones(3, np.float32), Version(1), 7))
    for server in (first, second):
        values = server.bridge().pull()
        assert values.vector.tolist() == [-1.5] * 3
        assert (values.version.number, values.global_t) == (2, 14)


def test_adam_corrects_its_bias_after_a_restart_as_it_would_have_before():
    """Its number of steps is in the checkpoint, exactly: it is no float32."""
    saver, steps = Memory(), [np.float32([3, -1, 0.1]), np.float32([-2, 5, 0.1])]
    first = make(saver, optimizer=Adam(3, AdamSettings()))
    first.bridge().push(Gradient(steps[0], Version(0), 7))
    first.save_checkpoint()
    assert saver.checkpoint.tensors["adam/steps"].tolist() == [1]
    assert saver.checkpoint.tensors["adam/steps"].dtype == np.int64
    second = make(saver, optimizer=Adam(3, AdamSettings()))
    second.restore_latest_checkpoint()
    for server in (first, second):
        server.bridge().push(Gradient(steps[1], Version(1), 7))
        server.save_checkpoint()
        assert saver.checkpoint.tensors["adam/steps"].tolist() == [2]
    found = [server.bridge().pull().vector.tolist() for server in (first, second)]
    assert found[0] == found[1]


def test_a_checkpoint_of_parameters_that_gradients_move_has_kept_its_names():
    saver = Memory()
    saver.checkpoint = Checkpoint(
        tensors={
            "parameters": np.ones(3, np.float32),
            "adam/mean": np.full(3, 0.5, np.float32),
            "adam/mean_square": np.full(3, 0.25, np.float32),
            "adam/steps": np.array([1]),
        },
        global_t=7,
        version=1,
        fingerprint={"units": 3},
    )
    server = make(saver, optimizer=Adam(3, AdamSettings()))
    server.restore_latest_checkpoint()
    values = server.bridge().pull()
    assert (values.vector.tolist(), values.version.number, values.global_t) == ([1.0] * 3, 1, 7)
    before = saver.checkpoint
    server.save_checkpoint()
    assert saver.checkpoint.tensors.keys() == before.tensors.keys()


def test_a_checkpoint_of_another_optimiser_is_refused_with_both_names():
    saver = Memory()
    make(saver, optimizer=Adam(3, AdamSettings())).save_checkpoint()
    with pytest.raises(CheckpointMismatch) as refusal:
        make(saver, optimizer=SGD(3, 0.9)).restore_latest_checkpoint()
    assert str(refusal.value) == (
        "the checkpoint in memory is of a training with the optimiser adam, and this "
        "configuration asks for the optimiser sgd. Use another checkpoint location or the settings "
        "that made it"
    )


def test_a_checkpoint_of_a_learner_is_refused_by_workers_that_learn():
    saver = Memory()
    make(saver, optimizer=SGD(3, 0.9)).save_checkpoint()
    published = {"parameters": np.zeros(3, np.float32), "published/time": np.zeros(1)}
    saver.checkpoint = replace(saver.checkpoint, tensors=published)
    with pytest.raises(
        CheckpointMismatch, match=r"with a learner of its own, which publishes .lea"
    ):
        make(saver, optimizer=SGD(3, 0.9)).restore_latest_checkpoint()


@pytest.mark.parametrize("learns", [True, False])
def test_without_a_checkpoint_a_training_begins_but_serving_is_worth_a_warning(learns, caplog):
    server = make(Memory(), learns=learns)
    server.restore_latest_checkpoint()
    assert server.global_t() == 0
    assert ("what is served has learnt nothing" in caplog.text) is not learns


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fingerprint": {"units": 9}}, "units is 3 in the checkpoint and 9 here"),
        ({"size": 4, "fingerprint": {"units": 3}}, "the checkpoint holds"),
    ],
)
def test_a_checkpoint_of_another_network_is_refused(change, reason):
    saver = Memory()
    make(saver).save_checkpoint()
    with pytest.raises(CheckpointMismatch, match=reason):
        make(saver, **change).restore_latest_checkpoint()


def test_the_training_is_over_at_its_last_step_and_nothing_changes_then():
    server = make(Memory(), max_global_step=10)
    server.bridge().add(9)
    assert not server.training_is_over()
    server.bridge().add(1)
    assert server.training_is_over()
    server.stop_training()
    server.bridge().push(Gradient(np.ones(3, np.float32), Version(0), 5))
    assert server.global_t() == 10
    assert server.bridge().pull().vector.tolist() == [0.0] * 3


def test_the_update_that_reaches_the_last_step_is_the_last_one():
    """However late the parameter server's process takes note of it."""
    server = make(Memory(), max_global_step=10)
    for _ in range(3):
        server.bridge().push(Gradient(np.ones(3, np.float32), Version(0), 7))
    server.bridge().add(7)
    values = server.bridge().pull()
    assert (values.version.number, values.global_t) == (2, 14)
    assert values.vector.tolist() == [-1.5] * 3
