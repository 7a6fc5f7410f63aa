"""Blobs that wait on the disk: nothing is lost, and the order is kept, while a store is away."""

import contextlib
import os
import threading

import pytest
from checkpoints import checkpoint
from processes import wait_for

from relaax.errors import CheckpointError, DamagedCheckpoint
from relaax.server.common.saver import CheckpointSaver, DirectoryStore, Ownership
from relaax.server.common.saver.outbox import Outbox


class FarStore(DirectoryStore):
    """Files of a directory behind a network that can be cut, or made to hang."""

    def __init__(self, directory):
        super().__init__(directory)
        self.is_away = False
        self.fault = None
        self.attempts = 0
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.told = []

    def put(self, name, data):
        self._reach(f"+{name}")
        super().put(name, data)

    def delete(self, name):
        self._reach(f"-{name}")
        super().delete(name)

    def _reach(self, what):
        self.goes_on.wait(30)
        self.attempts += 1
        if self.is_away:
            raise CheckpointError("the network is cut")
        if self.fault is not None:
            raise self.fault
        self.told.append(what)


@pytest.fixture(name="far")
def _far(tmp_path):
    return FarStore(tmp_path / "far")


@pytest.fixture(name="make")
def _make(tmp_path, far):
    made = []

    def make():
        made.append(Outbox(far, tmp_path / "spool", first_pause_s=0.01))
        return made[-1]

    yield make
    far.is_away, far.fault = False, None
    far.goes_on.set()
    for outbox in made:
        outbox.close()


def wait_until_sent(outbox):
    wait_for(lambda: not outbox.waiting(), "all being sent")


def spooled(tmp_path):
    return sorted(path.name for path in (tmp_path / "spool").iterdir())


def test_what_is_put_is_sent_and_is_no_longer_on_the_disk(make, far, tmp_path):
    outbox = make()
    outbox.put("a", b"1")
    wait_until_sent(outbox)
    assert far.get("a") == outbox.get("a") == b"1"
    assert spooled(tmp_path) == []
    outbox.delete("a")
    wait_until_sent(outbox)
    assert far.names() == outbox.names() == []


def test_a_put_does_not_wait_for_the_store(make, far):
    outbox = make()
    far.goes_on.clear()
    outbox.put("a", b"1")
    outbox.put("b", b"2")
    assert sorted(outbox.names()) == ["a", "b"]
    assert outbox.get("b") == b"2"
    assert far.names() == []
    far.goes_on.set()
    wait_until_sent(outbox)
    assert far.told == ["+a", "+b"]


def test_while_the_store_is_away_all_is_kept_and_it_is_said_once(make, far, caplog):
    outbox = make()
    far.is_away = True
    for name in "abc":
        outbox.put(name, name.encode())
    outbox.delete("b")
    wait_for(lambda: "the network is cut: what is saved is kept in " in caplog.text, "a warning")
    assert sorted(outbox.names()) == ["a", "c"]
    assert outbox.get("c") == b"c"
    with pytest.raises(DamagedCheckpoint):
        far.get("a")
    far.is_away = False
    wait_until_sent(outbox)
    assert far.told == ["+a", "+c"]
    assert sorted(far.names()) == ["a", "c"]
    assert caplog.text.count("the network is cut") == 1
    assert "is back: all that waits is sent" in caplog.text


@pytest.mark.parametrize("fault", [OSError(24, "Too many open files"), MemoryError("no memory")])
def test_after_an_unexpected_error_sending_goes_on_and_the_traceback_is_logged_once(
    make, far, caplog, fault
):
    outbox = make()
    far.fault = fault
    outbox.put("a", b"1")
    outbox.put("b", b"2")
    wait_for(lambda: far.attempts > 2, "more attempts")
    assert sorted(outbox.names()) == ["a", "b"]
    assert outbox.waiting() == 2
    far.fault = None
    wait_until_sent(outbox)
    assert sorted(far.names()) == ["a", "b"]
    [logged] = [record for record in caplog.records if record.exc_info]
    assert logged.exc_info[1] is fault
    assert "is back: all that waits is sent" in caplog.text


def test_the_last_of_several_blobs_of_a_name_is_what_counts(make, far):
    outbox = make()
    far.goes_on.clear()
    for data in (b"1", b"2", b"3"):
        outbox.put("a", data)
    assert outbox.get("a") == b"3"
    far.goes_on.set()
    wait_until_sent(outbox)
    assert far.get("a") == b"3"


def test_a_blob_that_is_deleted_while_it_is_sent_is_deleted_after_that(make, far):
    outbox = make()
    far.goes_on.clear()
    outbox.put("a", b"1")
    wait_for(lambda: outbox._sending is not None, "the transfer")
    outbox.delete("a")
    assert outbox.names() == []
    with pytest.raises(DamagedCheckpoint):
        outbox.get("a")
    far.goes_on.set()
    wait_until_sent(outbox)
    assert far.names() == []


def test_a_blob_of_another_name_is_the_same(make, far):
    outbox = make()
    outbox.put("a", b"1")
    outbox.rename("a", "b")
    wait_until_sent(outbox)
    assert far.names() == ["b"]
    assert far.get("b") == b"1"


def test_what_a_process_could_not_send_the_next_one_does(make, far, tmp_path, caplog):
    away = FarStore(tmp_path / "far")
    away.is_away = True
    first = Outbox(away, tmp_path / "spool", first_pause_s=0.01)
    for name in ("later", "earlier", "again"):
        first.put(name, name.encode())
    with pytest.raises(CheckpointError, match=r"3 files were not sent to \S+far: they are in \S+"):
        first.close(deadline_s=0.1)
    assert spooled(tmp_path) == ["again", "earlier", "later"]
    far.goes_on.clear()
    second = make()
    assert sorted(second.names()) == ["again", "earlier", "later"]
    assert second.get("earlier") == b"earlier"
    far.goes_on.set()
    wait_until_sent(second)
    assert far.told == ["+later", "+earlier", "+again"]
    assert sorted(far.names()) == ["again", "earlier", "later"]
    assert "3 files were not sent to" in caplog.text
    away.is_away = False  # a process that ends has no thread any more
    first.close()


def test_checkpoints_are_saved_and_restored_through_it(make, far):
    outbox = make()
    saver = CheckpointSaver(outbox, keep=2)
    far.is_away = True
    for step in (1, 2, 3):
        saver.save(checkpoint(step))
    assert CheckpointSaver(outbox).restore_latest().global_t == 3
    far.is_away = False
    wait_until_sent(outbox)
    assert CheckpointSaver(far).restore_latest().global_t == 3
    assert CheckpointSaver(far).steps() == {2, 3}
    names = [name[1:] for name in far.told if name.startswith("+cp-3")]
    assert names[-1] == "cp-3.json"  # after its data


def test_data_is_sent_before_what_describes_it_also_where_the_clock_was_set_back(
    make, far, tmp_path
):
    CheckpointSaver(DirectoryStore(tmp_path / "spool")).save(checkpoint(5))  # and it was killed
    for path in (tmp_path / "spool").iterdir():
        moment = 1 if path.suffix == ".json" else 2_000_000_000
        os.utime(path, (moment, moment))
    make().close()
    assert [name.rpartition(".")[2] for name in far.told] == ["safetensors", "json"]


class TestALostCheckpoint:
    """One whose files are gone from the spool, or cannot be read, before they are sent."""

    @pytest.fixture(name="spool")
    def _spool(self, tmp_path):
        return tmp_path / "spool"

    @pytest.fixture(name="saved")
    def _saved(self, make, far):
        """An outbox, and what saves through it and keeps one; step 1 is there, 2 waits."""
        outbox = make()
        saver = CheckpointSaver(outbox, keep=1)
        saver.save(checkpoint(1))
        wait_until_sent(outbox)
        far.is_away = True
        saver.save(checkpoint(2))
        return outbox, saver

    @pytest.mark.parametrize("lost", ["cp-2.*.safetensors", "cp-2.json"])
    def test_leaves_the_one_before_in_the_store(self, saved, far, spool, caplog, lost):
        outbox, _ = saved
        [path] = spool.glob(lost)
        wait_for(lambda: far.attempts > 2, "an attempt")
        path.unlink()
        far.is_away = False
        wait_until_sent(outbox)
        assert CheckpointSaver(far).steps() == {1}
        assert CheckpointSaver(far).restore_latest().global_t == 1
        assert CheckpointSaver(outbox).restore_latest().global_t == 1
        assert f"{path.name} is not sent to" in caplog.text
        assert "cp-1.json is not deleted from" in caplog.text
        assert spooled(spool.parent) == []

    def test_is_forgotten_with_the_next_whole_one(self, saved, far, spool):
        outbox, saver = saved
        [path] = spool.glob("cp-2.*.safetensors")
        path.unlink()
        far.is_away = False
        wait_until_sent(outbox)
        saver.save(checkpoint(3))
        wait_until_sent(outbox)
        assert sorted(name.partition(".")[0] for name in far.names()) == ["cp-3", "cp-3"]

    def test_does_not_hold_up_deletions_behind_a_whole_one(self, far, make, spool):
        far.goes_on.clear()
        outbox = make()
        saver = CheckpointSaver(outbox, keep=2)
        for step in (1, 2, 3, 4):
            saver.save(checkpoint(step))
        [path] = spool.glob("cp-3.*.safetensors")
        path.unlink()
        far.goes_on.set()
        far.is_away = False
        wait_until_sent(outbox)
        assert CheckpointSaver(far).steps() == {4}  # 3 was lost, and others are too old

    def test_was_lost_between_two_processes(self, far, make, spool):
        CheckpointSaver(far).save(checkpoint(1))
        CheckpointSaver(DirectoryStore(spool)).save(checkpoint(2))
        [path] = spool.glob("cp-2.*.safetensors")
        path.unlink()
        outbox = make()
        wait_until_sent(outbox)
        assert CheckpointSaver(far).steps() == {1}

    def test_a_manifest_that_is_no_manifest_is_not_sent(self, far, make, spool):
        CheckpointSaver(DirectoryStore(spool)).save(checkpoint(2))
        (spool / "cp-2.json").write_text("{}")
        wait_until_sent(make())
        assert CheckpointSaver(far).steps() == set()


class TestTwoWriters:
    """Two processes that save to one place, of which each has a spool of its own."""

    @pytest.fixture(name="writer")
    def _writer(self, tmp_path, far):
        made = []

        def writer(name, keep=1):
            outbox = Outbox(far, tmp_path / name, 0.01, Ownership(far))
            made.append(outbox)
            saver = CheckpointSaver(outbox, keep=keep)
            saver.restore_latest()

            def save(step):
                saver.save(checkpoint(step))
                wait_until_sent(outbox)

            return outbox, save

        yield writer
        for outbox in made:
            with contextlib.suppress(CheckpointError):
                outbox.close()

    def newest(self, far):
        return CheckpointSaver(far).restore_latest().global_t

    def test_the_one_that_begins_last_goes_on_and_the_other_changes_nothing(
        self, writer, far, caplog
    ):
        old, save = writer("old")
        save(100)
        _, save_new = writer("new")
        save_new(110)
        before = {name: far.get(name) for name in far.names()}
        CheckpointSaver(old, keep=1).save(checkpoint(120))
        wait_for(lambda: "and began later" in caplog.text, "a refusal")
        with pytest.raises(CheckpointError, match="saves nothing there any more"):
            save(130)
        assert {name: far.get(name) for name in far.names()} == before
        assert self.newest(far) == 110
        save_new(140)
        assert self.newest(far) == 140

    def test_one_that_was_cut_off_sends_nothing_of_what_it_has_kept(self, writer, far, tmp_path):
        old, save = writer("old")
        save(100)
        far.is_away = True
        CheckpointSaver(old, keep=1).save(checkpoint(200))  # it deletes what it has saved before
        goes_on = FarStore(tmp_path / "far")  # the way of another machine
        new = CheckpointSaver(Outbox(goes_on, tmp_path / "new", 0.01, Ownership(goes_on)), keep=1)
        assert new.restore_latest().global_t == 100
        new.save(checkpoint(110))
        wait_for(lambda: self.newest(goes_on) == 110, "the other one's checkpoint")
        far.is_away = False
        with pytest.raises(CheckpointError, match="were not sent"):
            old.close()
        assert self.newest(far) == 110

    def test_a_place_that_was_cleared_is_taken_again(self, writer, far):
        _, save = writer("old")
        save(100)
        far.delete("owner")
        save(110)
        assert self.newest(far) == 110
