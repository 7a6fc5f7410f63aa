"""A parameter server in several shards: each owns a slice, and loses no more than its own."""

import contextlib
import re
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from processes import free_port, wait_for
from shards import Shards, random_vectors, whole

from relaax.algorithm_base import Checkpoint, Gradient, Statistics
from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.checkpoints.checkpoint_sets import FirstSaver, SetName
from relaax.errors import (
    BridgeError,
    CheckpointError,
    CheckpointMismatch,
    ConfigurationError,
    ParameterServerAway,
)
from relaax.learning.filters import Filters, initial_statistics
from relaax.observations import UNNAMED
from relaax.parameters import BridgeControl, stub
from relaax.parameters.optimizers import SGD, Adam, AdamSettings, RMSProp, RMSPropSettings
from relaax.parameters.optimizers.optimizer import OptimizerOfParts, Part
from relaax.parameters.process import shards as process
from relaax.parameters.sharded import ShardedBridge

SIZE = 103

INITIAL = random_vectors(1, SIZE, seed=7)[0]

OPTIMIZERS = {
    "rmsprop": lambda size: RMSProp(size, RMSPropSettings()),
    "adam": lambda size: Adam(size, AdamSettings(weight_decay=0.01)),
    "sgd": lambda size: SGD(size, 0.9),
    "parts": lambda size: OptimizerOfParts(
        {
            "policy": Part(30, Adam(30, AdamSettings()), 0.5),
            "critics": Part(size - 30, SGD(size - 30, 0.9), 2.0),
        }
    ),
}

SGD_OF = OPTIMIZERS["sgd"]


@pytest.fixture(autouse=True)
def _polled_often(monkeypatch):
    """Pauses between two looks are a fraction of what they are, and so is what a test waits."""
    monkeypatch.setattr(stub, "FIRST_WAIT_S", 0.2)
    monkeypatch.setattr(process, "LOOK_S", 0.05)


@pytest.fixture(name="shards_of")
def _shards_of():
    started = []

    def start(*arguments, **keywords):
        started.append(Shards(*arguments, **keywords))
        return started[-1]

    yield start
    for shards in started:
        shards.close()


def moved(initial, make_optimizer, gradients, steps):
    """What one parameter server without shards makes of gradients."""
    service = whole(initial, make_optimizer(initial.size)).bridge()
    for gradient, count in zip(gradients, steps, strict=True):
        service.synchronize(gradient, count)
    return service.get_values()


def slice_of(vector, index, count):
    return vector[SIZE * (index - 1) // count : SIZE * index // count]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("count", [2, 5])
def test_the_same_gradients_give_the_same_parameters_to_the_bit(shards_of, count, optimizer):
    gradients, steps = random_vectors(20, SIZE), [7, 0, 32, 5] * 5
    expected = moved(INITIAL, OPTIMIZERS[optimizer], gradients, steps)
    with shards_of(count, INITIAL, OPTIMIZERS[optimizer]).bridge() as bridge:
        values = bridge.get_values()
        assert values.vector.tobytes() == INITIAL.tobytes()
        for gradient, counted in zip(gradients, steps, strict=True):
            values = bridge.synchronize(gradient, counted, values.version)
        assert values.vector.tobytes() == expected.vector.tobytes()
        assert (values.global_t, values.version.number) == (expected.global_t, 20)


def test_all_shards_stop_at_the_same_step(shards_of):
    gradients = random_vectors(5, SIZE)
    expected = moved(INITIAL, SGD_OF, gradients[:3], [10] * 3)
    with shards_of(2, INITIAL, SGD_OF, max_global_step=30).bridge() as bridge:
        for gradient in gradients:
            values = bridge.synchronize(gradient, 10)
        assert values.global_t == 30
        assert values.vector.tobytes() == expected.vector.tobytes()


def test_a_slow_worker_does_not_open_a_shard_again_that_is_over(shards_of):
    gradients = random_vectors(4, SIZE)
    expected = moved(INITIAL, SGD_OF, gradients[:3], [10] * 3)
    shards = shards_of(2, INITIAL, SGD_OF, max_global_step=30)
    with shards.bridge() as bridge, shards.bridge() as slow:
        assert slow.get_values().global_t == 0
        for gradient in gradients[:3]:
            bridge.synchronize(gradient, 10)
        values = slow.synchronize(gradients[3], 10)
    assert values.vector.tobytes() == expected.vector.tobytes()


def test_a_slice_of_a_step_that_cannot_be_reached_is_refused(shards_of):
    shards = shards_of(2, INITIAL, SGD_OF, max_global_step=30)
    part = slice_of(INITIAL, 2, 2)
    with contextlib.closing(stub.Bridge(shards.addresses[1])) as bridge:
        late, last = (stub.update_message(Gradient(part), at=at) for at in (2**64 - 1, 29))
        with pytest.raises(BridgeError, match=f"global step {2**64 - 1} is more than"):
            bridge.begin(late, on_this_thread=True)()
        assert bridge.begin(last, on_this_thread=True)().fields.version == 1


def test_all_shards_apply_all_slices_of_several_workers(shards_of):
    """In an order of their own: plain gradient descent at one rate does not depend on it."""
    shards = shards_of(3, INITIAL, lambda size: SGD(size, 0.0))

    def work(number):
        with shards.bridge() as bridge:
            version = bridge.get_values().version
            for _ in range(25):
                version = bridge.synchronize(np.ones(SIZE, np.float32), 0, version).version

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    with shards.bridge() as bridge:
        values = bridge.get_values()
    assert values.version.number == 100
    np.testing.assert_allclose(values.vector, INITIAL - 10.0, rtol=1e-4)


def test_values_that_are_known_are_not_sent_again(shards_of):
    with shards_of(2, INITIAL, SGD_OF).bridge() as bridge:
        values = bridge.get_values()
        again = bridge.get_values(values.version)
        assert (again.version, again.vector) == (values.version, None)
        newer = bridge.synchronize(INITIAL, 1, values.version)
        assert newer.vector is not None
        assert bridge.get_values(values.version).vector.tobytes() == newer.vector.tobytes()


@pytest.mark.parametrize("count", [1, 2])
def test_the_statistics_of_filters_stay_together(shards_of, count):
    initial = np.concatenate([INITIAL, initial_statistics(2)])

    def optimizer(size):
        return SGD(INITIAL.size, 0.0)

    gathered = [Statistics(each) for each in np.abs(random_vectors(3, initial_statistics(2).size))]
    updates = [
        Gradient(gradient, steps=1, statistics=[statistics])
        for gradient, statistics in zip(random_vectors(3, INITIAL.size), gathered, strict=True)
    ]
    filters = Filters({UNNAMED: 2})
    alone = whole(initial, optimizer(SIZE), filters=filters).bridge()
    with shards_of(count, initial, optimizer, filters=filters).bridge() as bridge:
        for update in [*updates, gathered[0]]:
            expected, values = alone.push(update), bridge.push(update)
    assert values.vector.tobytes() == expected.vector.tobytes()


def test_statistics_that_a_shard_has_not_confirmed_may_be_lost(shards_of, caplog):
    initial = np.concatenate([INITIAL, initial_statistics(2)])
    shards = shards_of(2, initial, lambda _: SGD(INITIAL.size, 0.0), filters=Filters({UNNAMED: 2}))
    with shards.bridge(retry_for_s=0.2, call_timeout_s=2.0) as bridge:
        bridge.get_values()
        shards.kill_other(2)
        with pytest.raises(ParameterServerAway):
            bridge.push(Statistics(initial_statistics(2)))
    said = f"statistics may be lost: shard {shards.addresses[1]} has not confirmed it"
    assert said in caplog.text


@pytest.mark.parametrize(
    ("gradient", "reason"),
    [
        (np.append(INITIAL[1:], np.float32(np.nan)), "the gradient is not finite"),
        (INITIAL[1:], r"the gradient has shape \(102,\), the parameters \(103,\)"),
    ],
)
def test_a_gradient_that_one_shard_would_refuse_is_applied_by_none(shards_of, gradient, reason):
    with shards_of(2, INITIAL, SGD_OF).bridge() as bridge:
        with pytest.raises(BridgeError, match=reason):
            bridge.synchronize(gradient, 5)
        values = bridge.get_values()
    assert (values.version.number, values.global_t) == (0, 0)
    assert values.vector.tobytes() == INITIAL.tobytes()


def test_while_a_shard_is_away_workers_wait_and_it_is_named(shards_of, caplog):
    shards = shards_of(2, INITIAL, SGD_OF)
    other = re.escape(shards.addresses[1])
    shards.wait_for_all()
    with shards.bridge(retry_for_s=0.5, call_timeout_s=2.0) as bridge:
        before = bridge.get_values()
        shards.kill_other(2)
        with pytest.raises(ParameterServerAway, match=rf"{other} has not answered for 0.5 s"):
            bridge.synchronize(INITIAL, 5, before.version)
        lost = rf"slice 2 of 2 may be lost: shard {other} has not confirmed it"
        assert re.search(lost, caplog.text)
        wait_for(shards.known.missing, "a look at the shard")
        with pytest.raises(ParameterServerAway, match=rf"shard 2/2 at {other} is away"):
            bridge.phase()
    # The first shard's own slice is not held up by another one.
    assert shards.first.global_t() == 5


def wait_for_looks(monkeypatch, count):
    """Wait until each other shard was asked for its status so often, counted from now."""
    asked, status = Counter(), stub.Bridge.status

    def noted(bridge):
        answer = status(bridge)
        asked[bridge.url] += 1
        return answer

    monkeypatch.setattr(stub.Bridge, "status", noted)
    wait_for(lambda: asked and min(asked.values()) >= count, "looks at the shards")


def test_a_killed_shard_comes_back_from_its_last_part_and_the_others_go_on(
    shards_of, tmp_path, caplog, monkeypatch
):
    shards = shards_of(3, INITIAL, OPTIMIZERS["adam"], tmp_path)
    gradients = random_vectors(7, SIZE)
    shards.wait_for_all()
    with shards.bridge() as bridge:
        for gradient in gradients[:4]:
            saved = bridge.synchronize(gradient, 10)
        shards.first.save_checkpoint()
        for gradient in gradients[4:6]:
            newest = bridge.synchronize(gradient, 10)
        wait_for_looks(monkeypatch, 3)
        shards.kill_other(2)
        shards.start_other(2)
        values = bridge.get_values()
        assert values.global_t == 60
        for index, expected in ((1, newest), (2, saved), (3, newest)):
            np.testing.assert_array_equal(
                slice_of(values.vector, index, 3), slice_of(expected.vector, index, 3)
            )
        wait_for(lambda: next(iter(shards.known.figures())).samples[0].value == 20, "the count")
        warning = "went back from global step 60 to 40: at least 20 steps are lost"
        wait_for(lambda: warning in caplog.text, "the warning")
        after = bridge.synchronize(gradients[6], 10, newest.version)
        assert "slice 2 of 3 was refused" in caplog.text
        np.testing.assert_array_equal(slice_of(after.vector, 2, 3), slice_of(saved.vector, 2, 3))
        assert after.global_t == 70


def test_a_stopped_shard_loses_nothing(shards_of, tmp_path, caplog):
    shards = shards_of(3, INITIAL, OPTIMIZERS["adam"], tmp_path)
    with shards.bridge() as bridge:
        values = bridge.synchronize(INITIAL, 10)
        shards.others[2].leave()
        shards.kill_other(2)
        shards.start_other(2)
        restored = bridge.get_values()
        assert restored.vector.tobytes() == values.vector.tobytes()
        assert restored.global_t == 10
    assert "lost" not in caplog.text


def test_all_that_are_stopped_one_after_another_lose_no_more_than_comes_meanwhile(
    shards_of, tmp_path, caplog
):
    shards = shards_of(3, INITIAL, OPTIMIZERS["adam"], tmp_path)
    with shards.bridge() as bridge:
        bridge.synchronize(INITIAL, 10)
        shards.first.save_checkpoint()
        values = bridge.synchronize(INITIAL, 10)
    shards.others[2].leave()
    shards.kill_other(2)
    shards.first.bridge().add(5)  # the second shard cannot save any more
    shards.others[3].leave()
    shards.kill_other(3)
    shards.first.save_checkpoint()
    assert caplog.text.count("no set is saved: shard 2/3") == 2
    assert "the last one is of step 20" in caplog.text
    shards.stop_first()
    shards.start_first()
    for index in (2, 3):
        shards.start_other(index)
    with shards.bridge() as bridge:
        restored = bridge.get_values()
    assert (restored.global_t, restored.vector.tobytes()) == (20, values.vector.tobytes())


def test_a_shard_that_ends_when_no_set_can_be_saved_says_so(shards_of, tmp_path, caplog):
    shards = shards_of(3, INITIAL, SGD_OF, tmp_path)
    with shards.bridge() as bridge:
        bridge.synchronize(INITIAL, 10)
    said = f"are not saved: the first shard at {shards.addresses[0]} has saved no set since"
    shards.others[3].leave()
    assert said not in caplog.text, "all of its updates are saved"
    shards.kill_other(3)
    shards.first.bridge().add(10)
    shards.others[2].server.bridge().synchronize(slice_of(INITIAL, 2, 3), 0)
    shards.others[2].leave()
    assert said in caplog.text


def test_a_shard_that_ends_when_another_one_was_killed_says_that_nothing_is_saved(
    shards_of, tmp_path, caplog
):
    shards = shards_of(4, INITIAL, SGD_OF, tmp_path)
    with shards.bridge() as bridge:
        bridge.synchronize(INITIAL, 10)
    shards.others[4].leave()
    shards.first.bridge().add(10)
    shards.others[2].server.bridge().synchronize(slice_of(INITIAL, 2, 4), 0)
    for index in (4, 3):  # one has left, the other one has not
        shards.kill_other(index)
    for _ in range(2):
        with pytest.raises(CheckpointError, match=r"no set is saved: shard"):
            shards.first.save_checkpoint()
    shards.others[2].leave()
    said = r"the updates since the last set are not saved: no set is saved: shard [34]/4"
    assert re.search(said, caplog.text)


def test_a_shard_that_ends_without_the_first_one_says_what_is_not_saved(
    shards_of, tmp_path, caplog
):
    shards = shards_of(3, INITIAL, SGD_OF, tmp_path)
    with shards.bridge() as bridge:
        bridge.synchronize(INITIAL, 10)
        shards.first.save_checkpoint()
        said = "the updates since the last set are not saved: the first shard at "
        shards.stop_first()
        shards.others[2].leave()
        assert said not in caplog.text, "all of its updates are saved"
        shards.others[3].server.bridge().synchronize(slice_of(INITIAL, 3, 3), 0)
        shards.others[3].leave()
        assert said in caplog.text
    shards.start_first()


def test_a_shard_that_is_stopped_without_a_place_for_checkpoints_ends(shards_of):
    shards = shards_of(2, INITIAL, SGD_OF)
    with shards.bridge() as bridge:
        bridge.get_values()
    shards.others[2].leave()


def test_without_a_checkpoint_a_killed_shard_begins_with_the_first_one_s_initial_values(shards_of):
    shards = shards_of(2, INITIAL, OPTIMIZERS["adam"])
    with shards.bridge() as bridge:
        newest = bridge.synchronize(INITIAL, 10)
        shards.kill_other(2)
        shards.start_other(2)
        values = bridge.get_values()
    np.testing.assert_array_equal(slice_of(values.vector, 2, 2), slice_of(INITIAL, 2, 2))
    np.testing.assert_array_equal(slice_of(values.vector, 1, 2), slice_of(newest.vector, 1, 2))


def test_the_first_shard_that_starts_again_goes_on_from_the_last_checkpoint(shards_of, tmp_path):
    shards = shards_of(2, INITIAL, OPTIMIZERS["adam"], tmp_path)
    with shards.bridge() as bridge:
        saved = bridge.synchronize(INITIAL, 10)
        shards.first.save_checkpoint()
        newest = bridge.synchronize(INITIAL, 10)
        shards.stop_first()
        shards.start_first()
        values = bridge.get_values()
    assert values.global_t == 10
    np.testing.assert_array_equal(slice_of(values.vector, 1, 2), slice_of(saved.vector, 1, 2))
    np.testing.assert_array_equal(slice_of(values.vector, 2, 2), slice_of(newest.vector, 2, 2))


def test_shards_that_are_over_go_on_with_a_first_one_that_has_gone_back(shards_of, tmp_path):
    shards = shards_of(2, INITIAL, SGD_OF, tmp_path, max_global_step=30)
    stop, other = threading.Event(), shards.others[2].server
    with ThreadPoolExecutor(1) as threads, shards.bridge() as bridge:
        is_over = threads.submit(shards.others[2].until_over, stop)
        bridge.synchronize(INITIAL, 10)
        shards.first.save_checkpoint()
        for _ in range(3):
            bridge.synchronize(INITIAL, 10)
        assert other.training_is_over()
        shards.stop_first()  # which is killed before it saves the end
        shards.start_first()
        assert bridge.get_values().global_t == 10
        wait_for(lambda: not other.training_is_over(), "the step of the first shard")
        before = other.updates()
        bridge.synchronize(INITIAL, 10)
        assert other.updates() == before + 1
        stop.set()
        assert not is_over.result()


def test_a_step_is_saved_once(shards_of, tmp_path):
    """Another set of it would take the parts of the first one away, one after the other."""
    shards = shards_of(2, INITIAL, SGD_OF, tmp_path)
    with shards.bridge() as bridge:
        shards.first.save_checkpoint()  # nothing was learnt yet
        bridge.synchronize(INITIAL, 10)
        for _ in range(2):
            shards.first.save_checkpoint()
            assert shards.others[2].servicer.saves.saved == 1
        bridge.synchronize(INITIAL, 5)
        shards.first.save_checkpoint()
        assert shards.others[2].servicer.saves.saved == 2


@pytest.mark.parametrize("steps", [0, 10])
def test_while_a_killed_shard_is_away_nothing_is_saved_and_then_all_is(shards_of, tmp_path, steps):
    shards = shards_of(3, INITIAL, SGD_OF, tmp_path)
    with shards.bridge() as bridge:
        for _ in range(steps // 10):
            bridge.synchronize(INITIAL, 10)
            shards.first.save_checkpoint()
        newest = bridge.synchronize(INITIAL, 10)
    shards.kill_other(2)
    with pytest.raises(CheckpointError, match=r"no set is saved: shard 2/3 at 127.0.0.1:\d+"):
        shards.first.save_checkpoint()
    shards.start_other(2)
    wait_for(shards.can_save, "a save of all")
    shards.close()
    with shards_of(3, INITIAL, SGD_OF, tmp_path).bridge() as bridge:
        values = bridge.get_values()
    assert values.global_t == steps + 10
    for index in (1, 3):
        np.testing.assert_array_equal(
            slice_of(values.vector, index, 3), slice_of(newest.vector, index, 3)
        )


def test_a_set_that_comes_late_is_not_saved_behind_a_newer_one(tmp_path):
    """The main loop and a shard that ends may ask for one at a time."""
    names = []
    saver = FirstSaver(
        CheckpointSaver(DirectoryStore(tmp_path)), lambda name, kept: names.append(name)
    )
    for step in (10, 25, 20):
        saver.save(Checkpoint({"w": INITIAL}, global_t=step, version=step, fingerprint={}))
    assert [name.global_t for name in names] == [10, 25]
    assert saver.last == names[-1]


def test_old_parts_are_deleted_with_the_first_shard_s(shards_of, tmp_path):
    shards = shards_of(2, INITIAL, SGD_OF, tmp_path)
    with shards.bridge() as bridge:
        for _ in range(4):
            bridge.synchronize(INITIAL, 10)
            shards.first.save_checkpoint()
    for place in (tmp_path, tmp_path / "shard-2-of-2"):
        steps = sorted(int(path.stem[3:]) for path in place.glob("cp-*.json"))
        assert steps[-2:] == [30, 40], place
        assert len(steps) <= 3, place


def test_where_a_part_cannot_be_saved_there_is_no_set(shards_of, tmp_path):
    shards = shards_of(2, INITIAL, SGD_OF, tmp_path)
    with shards.bridge() as bridge:
        bridge.synchronize(INITIAL, 10)
        (tmp_path / "shard-2-of-2").rmdir()
        (tmp_path / "shard-2-of-2").write_text("a file in the place of the directory")
        with pytest.raises(CheckpointError, match=r"no set is saved: shard 2/2 at 127.0.0.1:\d+"):
            shards.first.save_checkpoint()
    assert list(tmp_path.glob("cp-*")) == []
    saved, failures = shards.others[2].servicer.saves.counts()
    assert [saved.samples[0].value, failures.samples[0].value] == [0, 1]


def test_a_part_of_a_set_that_did_not_become_whole_is_passed_over(shards_of, tmp_path):
    shards = shards_of(2, INITIAL, SGD_OF, tmp_path)
    with shards.bridge() as bridge:
        saved = bridge.synchronize(INITIAL, 10)
        shards.first.save_checkpoint()
        bridge.synchronize(INITIAL, 10)
        shards.known.save_parts(SetName(20, bytes(8)), [10])  # and the first one is killed
    shards.close()
    again = shards_of(2, INITIAL, SGD_OF, tmp_path)
    with again.bridge() as bridge:
        values = bridge.get_values()
        bridge.synchronize(INITIAL, 5)
    assert (values.global_t, values.vector.tobytes()) == (10, saved.vector.tobytes())
    again.first.save_checkpoint()
    left = {path.name.split(".")[0] for path in (tmp_path / "shard-2-of-2").iterdir()}
    assert left == {"cp-10", "cp-15"}, "the part is deleted"


class TestASetThatIsNotWhole:
    """It is refused, by the name of the shard whose part it lacks."""

    @pytest.fixture(name="place")
    def _place(self, shards_of, tmp_path):
        shards = shards_of(2, INITIAL, SGD_OF, tmp_path)
        with shards.bridge() as bridge:
            for _ in range(2):
                bridge.synchronize(INITIAL, 10)
                shards.first.save_checkpoint()
        shards.close()
        return tmp_path

    def refusal(self, shards_of, place):
        lacks = "the checkpoint of step 20 lacks the part of shard 2/2: "
        with pytest.raises(CheckpointMismatch, match=lacks) as refused:
            shards_of(2, INITIAL, SGD_OF, place)
        return str(refused.value)

    def test_since_a_part_is_missing(self, shards_of, place):
        for path in (place / "shard-2-of-2").iterdir():
            path.unlink()
        assert "there are: none" in self.refusal(shards_of, place)

    def test_since_a_part_is_older(self, shards_of, place):
        (place / "shard-2-of-2" / "cp-20.json").unlink()
        assert "there are: 10" in self.refusal(shards_of, place)

    def test_since_a_part_is_damaged(self, shards_of, place):
        (path,) = (place / "shard-2-of-2").glob("cp-20.*.safetensors")
        path.write_bytes(path.read_bytes()[:-1])
        assert "is whole. Start all shards with --restore" in self.refusal(shards_of, place)

    def test_since_a_part_is_foreign(self, shards_of, place, tmp_path_factory):
        other = tmp_path_factory.mktemp("other")
        shards = shards_of(2, INITIAL, SGD_OF, other)
        with shards.bridge() as bridge:
            bridge.synchronize(INITIAL, 20)
            shards.first.save_checkpoint()
        shards.close()
        store = DirectoryStore(other / "shard-2-of-2")
        for path in (place / "shard-2-of-2").iterdir():
            path.unlink()
        for name in store.names():
            (place / "shard-2-of-2" / name).write_bytes(store.get(name))
        assert " is of another set" in self.refusal(shards_of, place)

    def test_gives_way_where_the_first_shard_s_part_is_damaged(self, shards_of, place):
        (path,) = place.glob("cp-20.*.safetensors")
        path.write_bytes(path.read_bytes()[:-1])
        with shards_of(2, INITIAL, SGD_OF, place).bridge() as bridge:
            assert bridge.get_values().global_t == 10


def test_shards_in_another_order_are_no_parameter_server(shards_of):
    shards = shards_of(3, INITIAL, SGD_OF)
    first, second, third = shards.addresses
    bridge = ShardedBridge([first, third, second])
    with pytest.raises(BridgeError, match="in their order"):
        bridge.get_values()
    bridge.close()


def test_one_shard_alone_is_no_parameter_server(shards_of):
    shards = shards_of(2, INITIAL, SGD_OF)
    for address in shards.addresses:
        bridge = BridgeControl().parameter_server_stub(address)
        with pytest.raises(BridgeError, match="name all of them, the first one first"):
            bridge.get_values()
        bridge.close()


def test_a_shard_of_another_configuration_is_refused(shards_of):
    shards = shards_of(2, INITIAL, SGD_OF)
    other = shards_of.__call__(2, INITIAL[1:], SGD_OF)
    other.addresses[0] = shards.addresses[0]
    other.kill_other(2)
    with pytest.raises(ConfigurationError, match="is of 102 parameters, this one of 103"):
        other.start_other(2)


def test_no_shard_is_there():
    bridge = ShardedBridge([f"127.0.0.1:{free_port()}" for _ in range(2)], retry_for_s=0.2)
    with pytest.raises(ParameterServerAway):
        bridge.get_values()
    bridge.close()


def test_a_bridge_that_is_closed_says_so(shards_of):
    shards = shards_of(2, INITIAL, SGD_OF)
    bridge = ShardedBridge(shards.addresses)
    bridge.get_values()
    shards.kill_other(2)
    failed = []

    def wait():
        try:
            bridge.get_values()
        except BridgeError as error:
            failed.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    bridge.close()
    waiting.join(20)
    assert isinstance(failed[0], ParameterServerAway)
    with pytest.raises(ParameterServerAway):
        bridge.get_values()
