"""DA3C's parameter server: what it saves and what it accepts."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from relaax.algorithm_base import CheckpointMismatch, NullMetrics, Saver
from relaax.errors import ConfigurationError

SECTION = {"action_size": 2, "state_size": [4], "seed": 1, "max_global_step": 100}


class Memory(Saver):
    """Keeps the latest checkpoint."""

    checkpoint = None

    def save(self, checkpoint):
        self.checkpoint = checkpoint

    def restore_latest(self):
        return self.checkpoint

    def location(self):
        return "memory"


@pytest.fixture(name="make")
def _make(da3c):
    return lambda saver, **changes: da3c.ParameterServer(
        da3c.Config({**SECTION, **changes}), saver, NullMetrics()
    )


def test_a_restored_training_goes_on_where_it_was(make):
    saver = Memory()
    first = make(saver)
    size = first.bridge().get_values().vector.size
    gradient = np.linspace(-1, 1, size, dtype=np.float32)
    first.bridge().synchronize(gradient, 7)
    first.save_checkpoint()
    second = make(saver, seed=99)
    second.restore_latest_checkpoint()
    assert second.global_t() == 7
    for server in (first, second):
        server.bridge().synchronize(gradient, 7)
    np.testing.assert_array_equal(
        first.bridge().get_values().vector, second.bridge().get_values().vector
    )
    assert second.bridge().get_values().version.number == 2


def moved_by(server, steps=0):
    """How far one gradient moves the parameters: the learning rate, of plain SGD."""
    before = server.bridge().get_values().vector
    gradient = np.ones(before.size, np.float32)
    after = server.bridge().synchronize(gradient, steps).vector
    return float(np.mean(before - after))


def test_a_larger_max_global_step_continues_from_the_rate_that_is_reached(make, caplog):
    saver = Memory()
    first = make(saver, SGD={"momentum": 0}, initial_learning_rate=1.0)
    assert moved_by(first, 50) == pytest.approx(1.0)
    assert moved_by(first) == pytest.approx(0.5, rel=1e-3)
    first.save_checkpoint()
    second = make(saver, SGD={"momentum": 0}, initial_learning_rate=1.0, max_global_step=200)
    second.restore_latest_checkpoint()
    assert "the learning rate at step 50 goes on with 0.5 and goes to 0 at step 200" in caplog.text
    assert moved_by(second, 75) == pytest.approx(0.5, rel=1e-3)
    assert moved_by(second) == pytest.approx(0.25, rel=1e-3)


def test_a_training_that_has_ended_says_how_to_begin_a_new_schedule(make):
    saver = Memory()
    first = make(saver, SGD={"momentum": 0})
    first.bridge().increment_global_t(100)
    first.save_checkpoint()
    with pytest.raises(ConfigurationError, match="anneal_from: 100 in the algorithm section"):
        make(saver, SGD={"momentum": 0}, max_global_step=200).restore_latest_checkpoint()
    again = make(
        saver, SGD={"momentum": 0}, initial_learning_rate=1.0, max_global_step=200, anneal_from=100
    )  # fmt: skip
    again.restore_latest_checkpoint()
    assert moved_by(again) == pytest.approx(1.0)
    make(saver, SGD={"momentum": 0}, max_global_step=200, learn=False).restore_latest_checkpoint()


def test_a_checkpoint_of_before_schedules_were_remembered_is_restored(make):
    saver = Memory()
    make(saver).save_checkpoint()
    tensors = dict(saver.checkpoint.tensors)
    del tensors["schedule/learning rate"]
    saver.checkpoint = replace(saver.checkpoint, tensors=tensors)
    make(saver).restore_latest_checkpoint()


@pytest.mark.parametrize("optimizer", ["Adam", "SGD"])
def test_any_optimiser_survives_a_restart_as_it_was(make, optimizer):
    saver = Memory()
    first, second = make(saver, **{optimizer: {}}), make(saver, **{optimizer: {}})
    size = first.bridge().get_values().vector.size
    gradient = np.linspace(-1, 1, size, dtype=np.float32)
    first.bridge().synchronize(gradient, 7)
    first.save_checkpoint()
    second.restore_latest_checkpoint()
    for server in (first, second):
        server.bridge().synchronize(-2 * gradient, 7)
    np.testing.assert_array_equal(
        first.bridge().get_values().vector, second.bridge().get_values().vector
    )
    reason = f"{optimizer.lower()}, and .* for the optimiser rmsprop"
    with pytest.raises(CheckpointMismatch, match=reason):
        make(saver).restore_latest_checkpoint()


def test_a_checkpoint_of_another_network_is_refused_naming_what_differs(make):
    saver = Memory()
    make(saver).save_checkpoint()
    with pytest.raises(CheckpointMismatch) as refusal:
        make(saver, action_size=3, hidden_layers=[8]).restore_latest_checkpoint()
    assert "action_size is 2 in the checkpoint and 3 here" in str(refusal.value)
    assert "dense_units is [64, 64] in the checkpoint and [8] here" in str(refusal.value)


def test_the_learning_rate_anneals_with_the_global_step(make):
    """At half of max_global_step the first step is half as long as at the start."""
    early, late = make(Memory()), make(Memory())
    size = early.bridge().get_values().vector.size
    gradient = np.ones(size, np.float32)
    late.bridge().increment_global_t(50)
    steps = []
    for server in (early, late):
        before = server.bridge().get_values().vector
        server.bridge().apply_gradients(gradient)
        steps.append((before - server.bridge().get_values().vector).mean())
    assert steps[1] == pytest.approx(steps[0] / 2, rel=1e-3)


def test_the_parameter_server_runs_without_tensorflow(da3c):
    program = (
        "import sys; from pathlib import Path;"
        "from relaax.configuration.algorithm_loader import load_algorithm;"
        "from relaax.algorithm_base import NullMetrics, NullSaver;"
        f"a = load_algorithm(Path({str(da3c.__path__[0])!r}));"
        "c = a.Config({'action_size': 2, 'state_size': [4]});"
        "a.ParameterServer(c, NullSaver(), NullMetrics());"
        "import relaax.parameters.process.main;"
        "sys.exit('tensorflow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
