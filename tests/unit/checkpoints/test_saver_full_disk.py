"""A disk without room: a save fails, what is there stays, and the next one with room succeeds."""

import pytest
from checkpoints import checkpoint, restored_step, saver, steps

from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.errors import CheckpointError
from relaax.processes.directory_lock import NAME, owned


class SmallDisk(DirectoryStore):
    """A directory that takes so many bytes."""

    def __init__(self, directory, room):
        super().__init__(directory)
        self.directory, self.room = directory, room

    def put(self, name, data):
        used = sum(path.stat().st_size for path in self.directory.iterdir())
        if used + len(data) > self.room:
            raise CheckpointError(f"cannot write {name}: No space left on device")
        super().put(name, data)


def size(directory, step):
    return [path.stat().st_size for path in directory.glob(f"cp-{step}.*")]


def test_data_whose_manifest_has_no_room_does_not_keep_the_next_save_out(tmp_path):
    saver(tmp_path).save(checkpoint(100))
    manifest, data = sorted(size(tmp_path, 100), reverse=True)
    one = CheckpointSaver(SmallDisk(tmp_path, 2 * data + manifest + 1), keep=1)
    one.restore_latest()
    with pytest.raises(CheckpointError, match=r"cannot write cp-200\.json"):
        one.save(checkpoint(200))
    assert len(list(tmp_path.iterdir())) == 2
    assert restored_step(tmp_path) == 100


def test_files_of_a_killed_process_make_room_when_a_save_fails(tmp_path):
    saver(tmp_path).save(checkpoint(100))
    one = CheckpointSaver(SmallDisk(tmp_path, 2 * sum(size(tmp_path, 100)) + 50), keep=1)
    (tmp_path / "cp-150.0123456789ab.safetensors").write_bytes(b"an orphan" * 100)
    one.restore_latest()
    with pytest.raises(CheckpointError, match="No space left"):
        one.save(checkpoint(200))
    one.save(checkpoint(210))
    assert steps(tmp_path) == [210]


def test_data_of_a_checkpoint_of_the_same_step_stays_when_there_is_no_room(tmp_path):
    saver(tmp_path).save(checkpoint(100))
    one = CheckpointSaver(SmallDisk(tmp_path, sum(size(tmp_path, 100)) + 10))
    one.restore_latest()
    with pytest.raises(CheckpointError, match="No space left"):
        one.save(checkpoint(100, value=7.0))
    assert restored_step(tmp_path) == 100


def test_a_directory_is_locked_where_there_is_no_room_for_the_owners_name(tmp_path, monkeypatch):
    def full(descriptor, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    with owned(tmp_path, "one"):
        assert (tmp_path / NAME).read_text() == ""
