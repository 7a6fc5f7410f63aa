"""Which checkpoints and data blobs a save deletes, and which it keeps."""

import pytest
from checkpoints import checkpoint, data_file, restored_step, saver, steps

from relaax.errors import CheckpointError
from relaax.server.common.saver import CheckpointSaver, DirectoryStore


@pytest.mark.parametrize("keep", [1, 3])
def test_the_newest_are_kept(tmp_path, keep):
    one = saver(tmp_path, keep)
    for global_t in (5, 10, 15, 20):
        one.save(checkpoint(global_t))
    assert steps(tmp_path) == [5, 10, 15, 20][-keep:]
    assert len(list(tmp_path.iterdir())) == 2 * keep


def test_the_one_just_written_is_kept_even_below_others(tmp_path):
    for global_t in (10, 20):
        saver(tmp_path).save(checkpoint(global_t))
    saver(tmp_path, keep=1).save(checkpoint(5))
    assert steps(tmp_path) == [5]


def test_files_of_other_names_are_never_deleted(tmp_path):
    others = ["notes.txt", "cp-1.json.bak", "cp-01.json", "cp-x.json", "cp-1.safetensors"]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / "cp-3.json").mkdir()
    one = saver(tmp_path, keep=1)
    for global_t in (5, 10):
        one.save(checkpoint(global_t))
    assert all((tmp_path / name).read_text() == "mine" for name in others)
    assert restored_step(tmp_path) == 10


def test_data_without_a_manifest_is_deleted_by_the_next_save(tmp_path):
    orphan = tmp_path / "cp-3.0123456789ab.safetensors"
    orphan.write_bytes(b"a killed run's")
    saver(tmp_path).save(checkpoint(5))
    assert not orphan.exists()


def test_data_that_a_replaced_manifest_named_is_deleted_later(tmp_path):
    saver(tmp_path).save(checkpoint(5))
    stale = tmp_path / "cp-5.0123456789ab.safetensors"
    stale.write_bytes(b"left by a kill between manifest and deletion")
    saver(tmp_path).save(checkpoint(6))
    assert not stale.exists()
    data_file(tmp_path, 6).unlink()
    assert restored_step(tmp_path) == 5


def test_data_of_an_unreadable_manifest_is_kept_for_a_person_to_judge(tmp_path):
    saver(tmp_path).save(checkpoint(5))
    (tmp_path / "cp-5.json").write_bytes(b"garbage")
    second = tmp_path / "cp-5.0123456789ab.safetensors"
    second.write_bytes(b"one of two")
    saver(tmp_path).save(checkpoint(6))
    assert second.exists()
    assert len(list(tmp_path.glob("cp-5.*.safetensors"))) == 2


def test_a_failing_deletion_is_a_warning(tmp_path, caplog):
    class Undeletable(DirectoryStore):
        def delete(self, name):
            raise CheckpointError(f"cannot delete {name}: read only")

    one = CheckpointSaver(Undeletable(tmp_path), keep=1)
    one.save(checkpoint(5))
    one.save(checkpoint(6))
    assert restored_step(tmp_path) == 6
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "cp-5.json" in caplog.text
    data_file(tmp_path, 5)  # its manifest is still there, so its data is too
