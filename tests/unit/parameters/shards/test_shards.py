"""A parameter server in several shards is one: the same updates, in the same order, or none."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from processes import free_port, wait_for
from shards import Shards, random_vectors, whole

from relaax.algorithm_base import Phase
from relaax.errors import BridgeError, CheckpointError, CheckpointMismatch, ParameterServerAway
from relaax.learning.filters.filters import MergingOptimizer
from relaax.learning.filters.statistics import initial_statistics
from relaax.parameters import BridgeControl, sharded
from relaax.parameters.optimizers import SGD, Adam, AdamSettings, RMSProp, RMSPropSettings
from relaax.parameters.optimizers.optimizer import OptimizerOfParts, Part
from relaax.parameters.process.shards import following, leader
from relaax.parameters.process.shards.following import LEAVE_S, FirstStub
from relaax.parameters.process.shards.members import Said
from relaax.parameters.process.shards.orders import Update
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


@pytest.fixture(autouse=True)
def _polled_often(monkeypatch):
    """Pauses between two looks are a fraction of what they are, and so is what a test waits."""
    monkeypatch.setattr(sharded, "FIRST_WAIT_S", 0.2)
    monkeypatch.setattr(sharded, "PAUSE_AWAY_S", 0.1)
    monkeypatch.setattr(leader, "LOOK_S", 0.05)
    monkeypatch.setattr(following, "PAUSE_S", 0.02)


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


def test_several_workers_are_applied_in_one_order_by_all_shards(shards_of):
    """All shards have one store's answer to the order that the first one has chosen."""
    shards = shards_of(3, INITIAL, OPTIMIZERS["adam"])
    gradients = random_vectors(4, SIZE)

    def work(number):
        with shards.bridge() as bridge:
            version = bridge.get_values().version
            for _ in range(25):
                version = bridge.synchronize(gradients[number], 1, version).version

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with shards.bridge() as bridge:
        values = bridge.get_values()
    orders = shards.leader.unsaved
    by_worker = {worker: n for n, worker in enumerate(dict.fromkeys(o.worker for o in orders))}
    assert len(orders) == values.version.number == values.global_t == 100
    assert sorted(by_worker.values()) == [0, 1, 2, 3]
    candidates = []
    for permutation in np.array(np.meshgrid(*[range(4)] * 4)).T.reshape(-1, 4):
        if len(set(permutation)) == 4:
            chosen = [gradients[permutation[by_worker[order.worker]]] for order in orders]
            candidates.append(moved(INITIAL, OPTIMIZERS["adam"], chosen, [1] * 100))
    assert values.vector.tobytes() in [each.vector.tobytes() for each in candidates]


def test_values_that_are_known_are_not_sent_again(shards_of):
    with shards_of(2, INITIAL, OPTIMIZERS["sgd"]).bridge() as bridge:
        values = bridge.get_values()
        again = bridge.get_values(values.version)
        assert (again.version, again.vector) == (values.version, None)
        newer = bridge.synchronize(INITIAL, 1, values.version)
        assert newer.vector is not None
        assert bridge.get_values(values.version).vector.tobytes() == newer.vector.tobytes()


def test_the_statistics_of_filters_stay_together(shards_of):
    initial = np.concatenate([INITIAL, initial_statistics(2)])

    def optimizer(size):
        return MergingOptimizer(SGD(INITIAL.size, 0.0), [2])

    gradients = np.abs(random_vectors(3, initial.size))
    expected = moved(initial, optimizer, gradients, [1, 1, 1])
    with shards_of(2, initial, optimizer).bridge() as bridge:
        for gradient in gradients:
            values = bridge.synchronize(gradient, 1)
    assert values.vector.tobytes() == expected.vector.tobytes()


def test_a_gradient_that_one_shard_refuses_is_applied_by_none(shards_of, caplog):
    spoilt = random_vectors(1, SIZE)[0]
    spoilt[-1] = np.nan
    with shards_of(2, INITIAL, OPTIMIZERS["sgd"]).bridge() as bridge:
        with pytest.raises(BridgeError, match=r"is not finite \(sent from 127\.0\.0\.1:"):
            bridge.synchronize(spoilt, 5)
        values = bridge.get_values()
    assert (values.version.number, values.global_t) == (0, 0)
    assert values.vector.tobytes() == INITIAL.tobytes()
    assert re.search(r"a call from 127\.0\.0\.1:\d+ was refused: the gradient", caplog.text)


def test_while_a_shard_is_away_nothing_is_applied_and_it_is_named(shards_of, caplog):
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"])
    with shards.bridge(retry_for_s=0.5, call_timeout_s=2.0) as bridge:
        bridge.get_values()
        shards.stop_other(2)
        with pytest.raises(ParameterServerAway, match=r"has not answered for 0.5 s"):
            bridge.synchronize(INITIAL, 5)
    # The first shard may say so of the other one.
    other = re.escape(shards.addresses[1])
    lost = rf"a gradient, which counts 5 steps, is lost: parameter server .*{other}"
    assert re.search(lost, caplog.text)
    assert shards.first.global_t() == 0


def test_a_shard_that_has_lost_what_it_had_lets_all_go_back_to_the_last_checkpoint(
    shards_of, tmp_path, caplog
):
    shards = shards_of(3, INITIAL, OPTIMIZERS["adam"], tmp_path)
    gradients = random_vectors(10, SIZE)
    with shards.bridge() as bridge:
        for gradient in gradients[:4]:
            values = bridge.synchronize(gradient, 10)
        shards.first.save_checkpoint()
        for gradient in gradients[4:6]:
            lost = bridge.synchronize(gradient, 10)
        shards.stop_other(2)
        shards.start_other(2)
        restored = bridge.get_values()
        assert restored.vector.tobytes() == values.vector.tobytes()
        assert (restored.version.number, restored.global_t) == (4, 40)
        assert bridge.synchronize(gradients[6], 10, lost.version).global_t == 40
        assert "a gradient was refused" in caplog.text
        for gradient in gradients[6:]:
            restored = bridge.synchronize(gradient, 10, restored.version)
    kept = [*gradients[:4], *gradients[6:]]
    expected = moved(INITIAL, OPTIMIZERS["adam"], kept, [10] * 8)
    assert restored.vector.tobytes() == expected.vector.tobytes()
    assert "all shards go back to global step 40; 2 updates and 20 steps are lost" in caplog.text


def test_a_shard_that_is_about_to_end_loses_nothing_that_was_learnt(shards_of, tmp_path, caplog):
    shards = shards_of(3, INITIAL, OPTIMIZERS["adam"], tmp_path)
    gradients = random_vectors(6, SIZE)
    with shards.bridge() as bridge:
        for gradient in gradients[:4]:
            values = bridge.synchronize(gradient, 10)
        shards.leader.report(2, Said.LEAVES, shards.leader.incarnation)
        wait_for(lambda: shards.others[2].follower.saves == 1, "the set that is saved for it")
        impatient = shards.bridge(retry_for_s=0.5, call_timeout_s=2.0)
        with impatient as other, pytest.raises(ParameterServerAway):  # it would not be in the set
            other.synchronize(gradients[4], 10, values.version)
        shards.stop_other(2)
        shards.start_other(2)
        restored = bridge.get_values()
        assert restored.vector.tobytes() == values.vector.tobytes()
        assert (restored.version.number, restored.global_t) == (4, 40)
        assert bridge.synchronize(gradients[5], 10, restored.version).global_t == 50
    assert "are lost" not in caplog.text


@pytest.mark.parametrize("where", [None, "missing"], ids=["saved nowhere", "nothing to save"])
def test_a_shard_for_which_nothing_is_saved_does_not_wait(shards_of, tmp_path, where):
    shards = shards_of(2, INITIAL, OPTIMIZERS["adam"], where and tmp_path / where)
    with shards.bridge() as bridge:
        bridge.get_values()
    leaving = threading.Thread(target=shards.others[2].following.leave)
    leaving.start()
    leaving.join(LEAVE_S / 2)
    assert not leaving.is_alive()


def reports_lost(monkeypatch, lost):
    """Reports ``lost`` never arrive, the first of each shard or all of them."""
    send = FirstStub.report

    def report(stub, said, *arguments, **keywords):
        if lost(said):
            raise BridgeError("the cable is cut")
        return send(stub, said, *arguments, **keywords)

    monkeypatch.setattr(FirstStub, "report", report)


def test_a_shard_whose_first_report_is_lost_is_there_all_the_same(shards_of, monkeypatch):
    sent = []

    def is_first(said):
        sent.append(said)
        return sent == [Said.BEGUN]

    reports_lost(monkeypatch, is_first)
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"])
    with shards.bridge(retry_for_s=20.0) as bridge:
        assert bridge.get_values().vector.tobytes() == INITIAL.tobytes()
    assert sent[0] is Said.BEGUN


def test_a_shard_that_has_nothing_to_do_hears_the_first_one(shards_of):
    shards = shards_of(3, INITIAL, OPTIMIZERS["sgd"])
    with shards.bridge() as bridge:
        bridge.get_values()
    shards.stop_other(3)  # nothing can be learnt without it
    following = shards.others[2].following
    following.leave()  # nothing is saved for it, so that it is let go, and connects again
    wait_for(lambda: following.is_connected, "the first shard being heard")
    assert not shards.leader.missing().startswith("shard 2/3")


def test_where_a_shard_goes_away_while_all_save_nothing_is_saved(shards_of, tmp_path, monkeypatch):
    monkeypatch.setattr(leader, "RECONNECT_S", 0.2)
    reports_lost(monkeypatch, lambda said: said is Said.SAVED)
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"], tmp_path)
    with shards.bridge() as bridge:
        bridge.synchronize(INITIAL, 10)
    with ThreadPoolExecutor(1) as thread:
        saving = thread.submit(shards.first.save_checkpoint)
        wait_for(lambda: shards.others[2].follower.saves == 1, "the part of the other shard")
        shards.stop_other(2)
        with pytest.raises(CheckpointError, match=r"shard 2/2 at \S+ has gone meanwhile"):
            saving.result()
    assert not list(tmp_path.glob("cp-*"))


def test_a_shard_that_starts_again_while_the_first_one_saves_begins_with_what_is_saved(
    shards_of, tmp_path
):
    """Else all would go back to the set before, and later jump to this one."""
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"], tmp_path)
    write = shards.first.saver.save

    def write_while_the_other_starts_again(checkpoint):
        shards.stop_other(2)
        wait_for(shards.leader.missing, "the end of the other shard")
        shards.start_other(2)
        with pytest.raises(AssertionError, match="the other shard did not happen"):
            wait_for(lambda: not shards.leader.missing(), "the other shard", 0.5)
        write(checkpoint)

    with shards.bridge() as bridge:
        bridge.synchronize(INITIAL, 10)
        shards.first.save_checkpoint()
        saved = bridge.synchronize(INITIAL, 10)
        shards.first.saver.save = write_while_the_other_starts_again
        shards.first.save_checkpoint()
        shards.first.saver.save = write
        values = bridge.get_values()
        assert values.vector.tobytes() == saved.vector.tobytes()
        assert values.global_t == 20
        shards.stop_other(2)
        shards.start_other(2)
        assert bridge.get_values().global_t == 20


def test_where_the_first_shard_cannot_save_all_go_back_to_the_set_before(shards_of, tmp_path):
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"], tmp_path)

    def fail(checkpoint):
        raise OSError("the disk is full")

    with shards.bridge() as bridge:
        bridge.synchronize(INITIAL, 10)
        shards.first.save_checkpoint()
        bridge.synchronize(INITIAL, 10)
        shards.first.saver.save = fail
        with pytest.raises(OSError, match="the disk is full"):
            shards.first.save_checkpoint()
        shards.stop_other(2)
        shards.start_other(2)
        assert bridge.get_values().global_t == 10


def test_a_step_is_saved_once(shards_of, tmp_path):
    """Another set of it would take the parts of the first one away, one after the other."""
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"], tmp_path)
    with shards.bridge() as bridge:
        bridge.synchronize(INITIAL, 10)
        shards.first.save_checkpoint()
        bridge.synchronize(INITIAL, 0)
        shards.first.save_checkpoint()
        assert shards.others[2].follower.saves == 1
        bridge.synchronize(INITIAL, 5)
        shards.first.save_checkpoint()
        assert shards.others[2].follower.saves == 2


def test_what_all_have_saved_is_forgotten(shards_of, tmp_path):
    """The first shard's memory does not grow with the updates of a training."""
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"], tmp_path)
    with shards.bridge() as bridge:
        for _ in range(3):
            for gradient in random_vectors(5, SIZE):
                bridge.synchronize(gradient, 10)
            shards.first.save_checkpoint()
            assert len(shards.leader.unsaved) == 1  # the save itself
        bridge.synchronize(INITIAL, 10)
        shards.stop_other(2)  # what all have not saved is lost with it
        shards.start_other(2)
        assert bridge.get_values().global_t == 150


def test_the_parameter_server_is_away_while_any_shard_is(shards_of):
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"])
    with shards.bridge(retry_for_s=20.0) as bridge:
        bridge.get_values()
        assert bridge.phase() is Phase.TRAINING
        shards.stop_other(2)
        wait_for(shards.leader.missing, "the first shard missing it")
        with pytest.raises(ParameterServerAway, match=r"shard 2/2 at \S+ is away"):
            bridge.phase()
        shards.end()  # that is not missed: there is nothing more to wait for
        assert bridge.phase() is Phase.CLOSING


def test_a_bridge_that_is_closed_says_so(shards_of):
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"])
    with shards.bridge() as bridge:
        values = bridge.get_values()
    with pytest.raises(ParameterServerAway, match="closed meanwhile"):
        bridge.get_values()
    with pytest.raises(ParameterServerAway, match="closed meanwhile"):
        bridge.synchronize(INITIAL, 1, values.version)


@pytest.mark.parametrize("saves", [False, True], ids=["", "after a checkpoint"])
def test_a_shard_that_was_cut_off_goes_on_where_it_was(shards_of, tmp_path, saves):
    shards = shards_of(2, INITIAL, OPTIMIZERS["adam"], tmp_path)
    gradients = random_vectors(8, SIZE)
    with shards.bridge() as bridge:
        version = bridge.get_values().version
        for gradient in gradients[:4]:
            version = bridge.synchronize(gradient, 10, version).version
        if saves:
            shards.first.save_checkpoint()
        shards.members.disconnect(2, 1)  # its stream ends, as a network's fault would
        for gradient in gradients[4:]:
            before = version
            while before == version:  # those are lost that come while it is away
                values = bridge.synchronize(gradient, 10, version)
                version = values.version
    expected = moved(INITIAL, OPTIMIZERS["adam"], gradients, [10] * 8)
    assert values.vector.tobytes() == expected.vector.tobytes()
    assert values.version.incarnation == before.incarnation


def test_a_shard_that_hears_late_of_updates_still_has_what_was_staged(shards_of):
    """The first shard commits what a shard behind a broken link does not hear of until later."""
    shards = shards_of(2, INITIAL, OPTIMIZERS["adam"])
    link = threading.Event()

    def late(said):
        for news in said:
            if isinstance(news, Update):
                link.wait(30)
            yield news

    shards.stop_other(2)
    shards.start_other(2, hears=late)
    gradients = random_vectors(6, SIZE)
    with shards.bridge(retry_for_s=0.5, call_timeout_s=0.5) as bridge:
        before = bridge.get_values()
        with pytest.raises(ParameterServerAway):  # the shard never has what was committed
            bridge.synchronize(gradients[0], 10)
        for gradient in gradients[1:5]:
            bridge.apply_gradients(gradient)
        link.set()
        bridge.wait_at_most(30.0)
        values = bridge.synchronize(gradients[5], 10)
    expected = moved(INITIAL, OPTIMIZERS["adam"], gradients, [10, 0, 0, 0, 0, 10])
    assert values.version.incarnation == before.version.incarnation
    assert (values.version.number, values.global_t) == (6, 20)
    assert values.vector.tobytes() == expected.vector.tobytes()
    for shard in (shards, shards.others[2]):
        assert len(shard.staging) == 0


def test_a_gradient_that_is_not_committed_makes_room_for_the_next_one(shards_of):
    """Nothing is kept of a worker that stages while another shard is away, but the last one."""
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"])
    with shards.bridge(retry_for_s=0.2, call_timeout_s=0.5) as bridge:
        bridge.get_values()
        shards.members.begin_anew()
        for gradient in random_vectors(3, SIZE):
            bridge.apply_gradients(gradient)
        assert len(shards.others[2].staging) == 1


def test_without_a_checkpoint_all_begin_anew(shards_of, caplog):
    shards = shards_of(2, INITIAL, OPTIMIZERS["adam"])
    with shards.bridge() as bridge:
        bridge.synchronize(INITIAL, 10)
        shards.stop_other(2)
        shards.start_other(2)
        values = bridge.get_values()
    assert values.vector.tobytes() == INITIAL.tobytes()
    assert (values.version.number, values.global_t) == (0, 0)


def test_the_first_shard_that_starts_again_goes_on_from_the_last_checkpoint(shards_of, tmp_path):
    shards = shards_of(2, INITIAL, OPTIMIZERS["adam"], tmp_path)
    with shards.bridge() as bridge:
        values = bridge.synchronize(INITIAL, 10)
        shards.first.save_checkpoint()
        bridge.synchronize(INITIAL, 10)
        shards.stop_first()
        shards.start_first()
        restored = bridge.get_values()
    assert restored.vector.tobytes() == values.vector.tobytes()
    assert restored.global_t == 10


def test_old_parts_are_deleted_with_the_first_shard_s(shards_of, tmp_path):
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"], tmp_path)
    with shards.bridge() as bridge:
        for _ in range(4):
            bridge.synchronize(INITIAL, 10)
            shards.first.save_checkpoint()
    for place in (tmp_path, tmp_path / "shard-2"):
        steps = sorted(int(path.stem[3:]) for path in place.glob("cp-*.json"))
        assert steps[-2:] == [30, 40], place
        assert len(steps) <= 3, place


def test_where_a_part_cannot_be_saved_there_is_no_checkpoint(shards_of, tmp_path):
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"], tmp_path)
    with shards.bridge() as bridge:
        bridge.synchronize(INITIAL, 10)
        (tmp_path / "shard-2").rmdir()
        (tmp_path / "shard-2").write_text("a file in the place of the directory")
        with pytest.raises(CheckpointError, match=r"nothing is saved: shard 2/2 at 127.0.0.1:\d+"):
            shards.first.save_checkpoint()
    assert list(tmp_path.glob("cp-*")) == []
    saved, failures = shards.others[2].follower.saved.counts()
    assert [saved.samples[0].value, failures.samples[0].value] == [0, 1]


def damage(place, step):
    (path,) = place.glob(f"cp-{step}.*.safetensors")
    path.write_bytes(path.read_bytes()[:-1])


class TestASetThatIsNotWhole:
    """The one before it is taken; without one it is refused, by the name of the shard."""

    @pytest.fixture(name="saved")
    def _saved(self, shards_of, tmp_path):
        shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"], tmp_path)
        with shards.bridge() as bridge:
            for _ in range(2):
                bridge.synchronize(INITIAL, 10)
                shards.first.save_checkpoint()
        shards.close()
        return tmp_path

    def failure_of(self, shards):
        """What ends the training, which looks again and again whether it is over."""

        def look():
            try:
                shards.first.training_is_over()
            except CheckpointMismatch as error:
                return str(error)

        return wait_for(look, "a refusal", 20)

    def require_begun(self, shards, step):
        """All shards begin with this step, as soon as it is looked whether the training is over."""

        def look():
            assert not shards.first.training_is_over()
            return shards.leader.began_with == step and not shards.first.missing()

        wait_for(look, f"a beginning at step {step}", 20)
        with shards.bridge(retry_for_s=20) as bridge:
            assert bridge.get_values().global_t == step

    def test_of_which_a_part_is_missing(self, shards_of, saved):
        for path in (saved / "shard-2").iterdir():
            path.unlink()
        said = self.failure_of(shards_of(2, INITIAL, OPTIMIZERS["sgd"], saved))
        assert "the checkpoint is not whole: shard 2/2 at" in said
        assert "its part of step 20 is missing" in said
        assert "there are: none" in said

    def test_of_which_a_part_is_missing_gives_way_to_the_one_before(self, shards_of, saved, caplog):
        (saved / "shard-2" / "cp-20.json").unlink()
        self.require_begun(shards_of(2, INITIAL, OPTIMIZERS["sgd"], saved), 10)
        assert "its part of step 20 is missing" in caplog.text
        assert "there are: 10: all begin with that of step 10" in caplog.text

    @pytest.mark.parametrize("damaged", [1, 2])
    def test_of_which_a_part_is_damaged_gives_way_and_is_set_aside(self, shards_of, saved, damaged):
        damage(saved if damaged == 1 else saved / f"shard-{damaged}", 20)
        shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"], saved)
        self.require_begun(shards, 10)
        with shards.bridge() as bridge:
            bridge.synchronize(INITIAL, 5, bridge.get_values().version)
        shards.first.save_checkpoint()
        assert (saved / "damaged-cp-20.json").exists()
        shards.close()
        self.require_begun(shards_of(2, INITIAL, OPTIMIZERS["sgd"], saved), 15)

    def test_of_which_no_part_is_whole_before_is_refused(self, shards_of, saved):
        damage(saved / "shard-2", 20)
        damage(saved, 10)
        said = self.failure_of(shards_of(2, INITIAL, OPTIMIZERS["sgd"], saved))
        assert "the checkpoint is not whole: shard 2/2 at" in said
        assert "no such checkpoint in" in said

    def test_that_all_go_back_to_gives_way_while_the_training_goes_on(self, shards_of, saved):
        shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"], saved)
        self.require_begun(shards, 20)
        damage(saved / "shard-2", 20)
        shards.stop_other(2)
        shards.start_other(2)
        self.require_begun(shards, 10)

    def test_of_which_a_part_is_of_another_set(self, shards_of, saved, tmp_path_factory):
        other = tmp_path_factory.mktemp("other")
        shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"], other)
        with shards.bridge() as bridge:
            bridge.synchronize(INITIAL, 20)
            shards.first.save_checkpoint()
        shards.close()
        for path in (saved / "shard-2").iterdir():
            path.unlink()
        for path in (other / "shard-2").iterdir():
            path.rename(saved / "shard-2" / path.name)
        said = self.failure_of(shards_of(2, INITIAL, OPTIMIZERS["sgd"], saved))
        assert "shard 2/2 at" in said
        assert "is of another set" in said


def test_shards_in_another_order_are_no_parameter_server(shards_of):
    shards = shards_of(3, INITIAL, OPTIMIZERS["sgd"])
    first, second, third = shards.addresses
    bridge = ShardedBridge([first, third, second])
    with pytest.raises(BridgeError, match="in their order"):
        bridge.get_values()
    bridge.close()


def test_who_names_one_shard_alone_is_told_to_name_all(shards_of):
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"])
    for address in shards.addresses:
        bridge = BridgeControl().parameter_server_stub(address)
        with pytest.raises(BridgeError, match="name all of them, the first one first"):
            bridge.get_values()
        bridge.close()


def test_the_end_of_the_training_ends_the_other_shards(shards_of, tmp_path):
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"], tmp_path)
    with shards.bridge() as bridge:
        bridge.synchronize(INITIAL, 10)
    shards.end()
    shards.stop_first()
    for _ in range(200):
        if shards.others[2].following.is_over:
            break
        threading.Event().wait(0.05)
    assert shards.others[2].follower.has_ended
    assert shards.others[2].following.error is None


def test_no_shard_is_there(caplog):
    bridge = ShardedBridge([f"127.0.0.1:{free_port()}" for _ in range(2)], retry_for_s=0.2)
    with pytest.raises(ParameterServerAway):
        bridge.get_values()
    bridge.close()


def test_the_first_one_that_is_about_to_stop_is_as_if_it_were_away(shards_of, caplog):
    shards = shards_of(2, INITIAL, OPTIMIZERS["sgd"])
    with shards.bridge() as bridge:
        version = bridge.get_values().version
        assert bridge.increment_global_t(5) == 5
        shards.refuse_calls()
        bridge.wait_at_most(0.0)
        for call in (
            bridge.get_values,
            bridge.increment_global_t,
            lambda: bridge.synchronize(INITIAL, 7, version),
        ):
            with pytest.raises(ParameterServerAway):
                call()
    assert re.search("a gradient, which counts 7 steps, is lost: .*is about to end", caplog.text)
    assert (shards.first.global_t(), shards.first.updates()) == (5, 0)


def test_steps_that_come_while_another_one_leaves_are_counted_when_it_is_back(
    shards_of, tmp_path, caplog
):
    shards = shards_of(3, INITIAL, OPTIMIZERS["sgd"], place=tmp_path)
    with shards.bridge() as bridge, ThreadPoolExecutor(1) as thread:
        assert bridge.increment_global_t(40) == 40
        shards.others[2].following.leave()
        counted = thread.submit(bridge.increment_global_t, 7)
        wait_for(lambda: "is about to end)" in caplog.text, "the refusal")
        shards.stop_other(2)
        shards.start_other(2)
        assert counted.result() == bridge.get_values().global_t == 47
    other = f"shard 2/3 at {shards.addresses[1]}"
    for said in ("is about to end: all save, and nothing is learnt until it is back", "is back"):
        assert f"{other} {said}" in caplog.messages
