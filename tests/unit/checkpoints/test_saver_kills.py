"""A kill between any two changes of the store leaves a good checkpoint."""

import pytest
from checkpoints import checkpoint, data_file, restored_step, saver

from relaax.checkpoints import BlobStore, CheckpointSaver, DirectoryStore


class Killed(BaseException):
    pass


class KilledAt(BlobStore):
    """A store whose process dies before its n-th change."""

    def __init__(self, store, changes):
        self.store = store
        self.changes = changes

    def change(self):
        if self.changes == 0:
            raise Killed
        self.changes -= 1

    def put(self, name, data):
        self.change()
        self.store.put(name, data)

    def delete(self, name):
        self.change()
        self.store.delete(name)

    def rename(self, name, new_name):
        self.change()
        self.store.rename(name, new_name)

    def get(self, name):
        return self.store.get(name)

    def names(self):
        return self.store.names()

    def folders(self):
        return self.store.folders()

    def location(self):
        return self.store.location()


@pytest.mark.parametrize("new_step", [150, 200, 250])
@pytest.mark.parametrize("newest_is_damaged", [False, True])
def test_a_kill_between_any_two_changes_leaves_a_good_one(tmp_path, new_step, newest_is_damaged):
    for changes in range(100):
        directory = tmp_path / str(changes)
        for global_t in (100, 200):
            saver(directory).save(checkpoint(global_t))
        if newest_is_damaged:
            data_file(directory, 200).write_bytes(b"")
        one = CheckpointSaver(KilledAt(DirectoryStore(directory), changes), keep=1)
        before = one.restore_latest()
        assert before is not None
        try:
            one.save(checkpoint(new_step))
        except Killed:
            assert restored_step(directory) in {before.global_t, new_step}
        else:
            assert changes >= 4
            return
    pytest.fail("the save never ended")


def test_a_kill_between_any_two_changes_loses_no_damaged_bytes(tmp_path):
    for changes in range(4):
        directory = tmp_path / str(changes)
        for global_t in (100, 200):
            saver(directory).save(checkpoint(global_t))
        data_file(directory, 200).write_bytes(b"precious")
        one = CheckpointSaver(KilledAt(DirectoryStore(directory), changes))
        one.restore_latest()
        with pytest.raises(Killed):
            one.save(checkpoint(150))

        after_the_kill = saver(directory, keep=1)
        after_the_kill.restore_latest()
        after_the_kill.save(checkpoint(160))

        assert b"precious" in [path.read_bytes() for path in directory.iterdir()]


@pytest.mark.parametrize("keep", [1, 2])
def test_a_kill_while_one_until_the_next_is_saved_costs_no_kept_checkpoint(tmp_path, keep):
    for changes in range(100):
        directory = tmp_path / str(changes)
        first = saver(directory, keep=keep)
        for global_t in (100, 200):
            first.save(checkpoint(global_t))
        first.save_until_next(checkpoint(300))
        one = CheckpointSaver(KilledAt(DirectoryStore(directory), changes), keep=keep)
        one.restore_latest()
        try:
            one.save_until_next(checkpoint(400))
        except Killed:
            killed = True
        else:
            killed = False
        again = saver(directory, keep=keep)
        again.restore_latest()
        again.save(checkpoint(500))
        assert again.steps() == set([100, 200, 500][-keep:]), changes
        if not killed:
            return
    raise AssertionError("it was always killed")
