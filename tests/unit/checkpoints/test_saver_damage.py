"""A damaged checkpoint is skipped at a restore, and set aside by the next save."""

import json
import logging

import pytest
from checkpoints import checkpoint, data_file, restored_step, saver, steps

from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.errors import CheckpointError, CheckpointMismatch


def truncate_data(directory):
    path = data_file(directory, 2)
    path.write_bytes(path.read_bytes()[:-1])


def flip_a_byte(directory):
    path = data_file(directory, 2)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def remove_data(directory):
    data_file(directory, 2).unlink()


def empty_manifest(directory):
    (directory / "cp-2.json").write_bytes(b"")


def garbage_manifest(directory):
    (directory / "cp-2.json").write_bytes(b"\xff\x00 no json")


def another_json(directory):
    (directory / "cp-2.json").write_text("[1, 2]")


def deep_json(directory):
    (directory / "cp-2.json").write_text("[" * 100_000)


def change_manifest(directory, **changes):
    path = directory / "cp-2.json"
    content = json.loads(path.read_text())
    del content["check"]  # as a RELAAX of before has written it
    path.write_text(json.dumps({**content, **changes}))


def manifest_of_another_step(directory):
    change_manifest(directory, global_t=3)


def manifest_with_a_word_for_a_number(directory):
    change_manifest(directory, size="many")


def manifest_that_leads_outside(directory):
    change_manifest(directory, data="../secret")


def honest_manifest_of_no_tensors(directory):
    data_file(directory, 2).write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    change_manifest(directory, size=0, sha256=empty)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (truncate_data, "bytes instead of"),
        (flip_a_byte, "sha256"),
        (remove_data, "is missing"),
        (empty_manifest, "not JSON"),
        (garbage_manifest, "not JSON"),
        (another_json, "not a manifest"),
        (deep_json, "not JSON"),
        (manifest_of_another_step, "is of step 3"),
        (manifest_with_a_word_for_a_number, "size"),
        (manifest_that_leads_outside, "secret"),
        (honest_manifest_of_no_tensors, "safetensors"),
    ],
)
def test_a_damaged_checkpoint_is_skipped_with_a_warning(tmp_path, caplog, damage, reason):
    saver(tmp_path).save(checkpoint(1))
    saver(tmp_path).save(checkpoint(2))
    damage(tmp_path)

    assert restored_step(tmp_path) == 1

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "cp-2.json" in record.getMessage()
    assert reason in record.getMessage()


def test_when_all_are_damaged_each_is_a_warning_and_no_checkpoint_is_restored(tmp_path, caplog):
    for global_t in (1, 2):
        saver(tmp_path).save(checkpoint(global_t))
        data_file(tmp_path, global_t).unlink()
    assert restored_step(tmp_path) is None
    assert len(caplog.records) == 2


def test_a_checkpoint_of_a_newer_format_is_not_skipped(tmp_path):
    saver(tmp_path).save(checkpoint(1))
    saver(tmp_path).save(checkpoint(2))
    change_manifest(tmp_path, format=2)
    with pytest.raises(CheckpointMismatch, match="format 2"):
        saver(tmp_path).restore_latest()


def test_a_store_that_refuses_is_not_taken_for_an_empty_one(tmp_path):
    class Refusing(DirectoryStore):
        def get(self, name):
            raise CheckpointError("permission denied")

    saver(tmp_path).save(checkpoint(1))
    with pytest.raises(CheckpointError, match="permission denied"):
        CheckpointSaver(Refusing(tmp_path)).restore_latest()


def test_restoring_changes_nothing(tmp_path):
    saver(tmp_path).save(checkpoint(1))
    saver(tmp_path).save(checkpoint(2))
    (tmp_path / "cp-2.json").write_bytes(b"garbage")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert restored_step(tmp_path) == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


class TestAfterARestoreSkippedADamagedOne:
    @pytest.fixture
    def directory(self, tmp_path):
        for global_t in (100, 200):
            saver(tmp_path).save(checkpoint(global_t))
        path = data_file(tmp_path, 200)
        path.write_bytes(path.read_bytes()[:-1])
        return tmp_path

    def restored(self, directory, keep):
        one = saver(directory, keep)
        found = one.restore_latest()
        assert found is not None
        assert found.global_t == 100
        return one

    @pytest.mark.parametrize("global_t", [150, 200, 250])
    def test_the_next_save_is_the_latest(self, directory, global_t, caplog):
        self.restored(directory, keep=1).save(checkpoint(global_t))
        caplog.clear()
        assert restored_step(directory) == global_t
        assert caplog.records == []

    def test_it_takes_no_good_ones_place(self, directory):
        one = self.restored(directory, keep=2)
        for global_t in (110, 120, 130):
            one.save(checkpoint(global_t))
        assert steps(directory) == [120, 130]

    def test_its_bytes_remain_under_another_name(self, directory):
        expected = {
            f"damaged-{path.name}": path.read_bytes() for path in directory.glob("cp-200.*")
        }
        one = self.restored(directory, keep=1)
        one.save(checkpoint(150))
        one.save(checkpoint(160))
        found = {path.name: path.read_bytes() for path in directory.glob("damaged-*")}
        assert found == expected
        assert len(found) == 2

    def test_a_second_one_of_the_same_step_does_not_replace_the_first(self, directory):
        self.restored(directory, keep=2).save(checkpoint(200))
        data_file(directory, 200).unlink()
        self.restored(directory, keep=2).save(checkpoint(210))
        assert {path.name for path in directory.glob("damaged-*.json*")} == {
            "damaged-cp-200.json",
            "damaged-cp-200.json.1",
        }

    def test_a_failure_to_rename_it_is_a_warning(self, directory, caplog):
        class NotRenaming(DirectoryStore):
            def rename(self, name, new_name):
                raise CheckpointError("read only")

        one = CheckpointSaver(NotRenaming(directory), keep=1)
        one.restore_latest()
        caplog.clear()
        one.save(checkpoint(150))
        assert "read only" in caplog.text
        assert restored_step(directory) == 150

    def test_a_damaged_checkpoint_that_cannot_be_renamed_replaces_no_good_one_and_is_renamed_later(
        self, directory
    ):
        class NotRenaming(DirectoryStore):
            refuses = True

            def rename(self, name, new_name):
                if self.refuses:
                    raise CheckpointError("no room for another name")
                super().rename(name, new_name)

        store = NotRenaming(directory)
        one = CheckpointSaver(store, keep=2)
        one.restore_latest()
        for global_t in (110, 120):
            one.save(checkpoint(global_t))
        assert steps(directory) == [110, 120, 200]
        store.refuses = False
        one.save(checkpoint(130))
        assert steps(directory) == [120, 130]
        assert (directory / "damaged-cp-200.json").exists()

    def test_a_damaged_checkpoint_that_cannot_be_renamed_is_replaced_when_its_step_is_saved_again(
        self, directory
    ):
        class NotRenaming(DirectoryStore):
            def rename(self, name, new_name):
                raise CheckpointError("read only")

        one = CheckpointSaver(NotRenaming(directory), keep=1)
        one.restore_latest()
        one.save(checkpoint(200))
        one.save(checkpoint(210))
        assert steps(directory) == [210]
