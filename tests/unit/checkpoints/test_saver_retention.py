"""Which checkpoints and data blobs a save deletes, and which it keeps."""

import pytest
from checkpoints import checkpoint, data_file, restored_step, saver, steps

from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.errors import CheckpointError


@pytest.mark.parametrize("keep", [1, 3])
def test_the_newest_are_kept(tmp_path, keep):
    one = saver(tmp_path, keep)
    for global_t in (5, 10, 15, 20):
        one.save(checkpoint(global_t))
    assert steps(tmp_path) == [5, 10, 15, 20][-keep:]
    assert len(list(tmp_path.iterdir())) == 2 * keep


class TestOneThatIsSavedUntilTheNext:
    def test_it_is_restored_and_gone_when_the_next_of_either_kind_is_saved(self, tmp_path):
        one = saver(tmp_path, keep=2)
        one.save_until_next(checkpoint(5))
        assert restored_step(tmp_path) == 5
        one.save_until_next(checkpoint(6))
        assert steps(tmp_path) == [6]
        one.save(checkpoint(10))
        assert steps(tmp_path) == [10]
        assert len(list(tmp_path.iterdir())) == 2

    def test_it_replaces_no_kept_checkpoint(self, tmp_path):
        one = saver(tmp_path, keep=2)
        for global_t in (10, 20):
            one.save(checkpoint(global_t))
            one.save_until_next(checkpoint(global_t + 5))
        assert steps(tmp_path) == [10, 20, 25]
        one.save(checkpoint(30))
        assert steps(tmp_path) == [20, 30]

    def test_it_stays_when_it_is_saved_again_as_any_other(self, tmp_path):
        one = saver(tmp_path)
        one.save_until_next(checkpoint(5))
        one.save(checkpoint(5, value=7.0))
        one.save_until_next(checkpoint(6))
        assert steps(tmp_path) == [5, 6]

    def test_at_the_step_of_a_kept_checkpoint_it_is_kept(self, tmp_path):
        one = saver(tmp_path)
        one.save(checkpoint(5, value=7.0))
        one.save_until_next(checkpoint(5))
        one.save_until_next(checkpoint(6))
        assert steps(tmp_path) == [5, 6]
        data_file(tmp_path, 6).unlink()
        assert restored_step(tmp_path) == 5

    @pytest.mark.parametrize("kind", ["save", "save_until_next"])
    def test_a_checkpoint_that_a_killed_process_has_left_pushes_no_other_out(self, tmp_path, kind):
        first = saver(tmp_path, keep=2)
        for global_t in (1, 2):
            first.save(checkpoint(global_t))
        first.save_until_next(checkpoint(3))
        for global_t in (4, 5, 6):  # each process is killed after it has saved
            again = saver(tmp_path, keep=2)
            assert again.restore_latest().global_t == global_t - 1
            again.save_until_next(checkpoint(global_t))
            assert steps(tmp_path) == [1, 2, global_t]
        last = saver(tmp_path, keep=2)
        last.restore_latest()
        getattr(last, kind)(checkpoint(7))
        assert steps(tmp_path) == ([2, 7] if kind == "save" else [1, 2, 7])

    def test_evaluations_are_those_of_the_checkpoint_that_follows(self, tmp_path):
        one = saver(tmp_path, keep=1, keep_best=1)
        one.save_until_next(checkpoint(5))
        one.scores.add(checkpoint(4).version, 100.0)
        one.save(checkpoint(10))
        one.scores.add(checkpoint(15).version, 50.0)
        one.save_until_next(checkpoint(16))
        one.save(checkpoint(20))
        assert steps(tmp_path) == [10, 20]
        assert one.scores.best() == [10, 20]


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
    again = saver(tmp_path)
    again.restore_latest()
    again.save(checkpoint(6))
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
