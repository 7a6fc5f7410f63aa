"""What the saver promises, over a real directory."""

import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import relaax.server.common.saver as package
from relaax.algorithm_base.checkpoint import Checkpoint
from relaax.errors import CheckpointError, CheckpointMismatch, ConfigurationError
from relaax.server.common.saver import BlobStore, CheckpointSaver, DirectoryStore

FINGERPRINT = {
    "algorithm": "da3c",
    "layers": [[16, 8, 4], [32, 4, 2]],
    "learning_rate": 0.1 + 0.2,
    "entropy_beta": 1e-300,
    "lstm": False,
    "seed": 2**70,
    "activation": None,
    "name": "Ünïcode \u0000",
}


def checkpoint(global_t: int, value: float | None = None) -> Checkpoint:
    fill = float(global_t) if value is None else value
    return Checkpoint(
        tensors={"w": np.full((3, 4), fill, np.float32), "slots/ms": np.arange(5.0)},
        global_t=global_t,
        version=global_t * 2,
        fingerprint=FINGERPRINT,
    )


def saver(directory: Path, keep: int = 5) -> CheckpointSaver:
    return CheckpointSaver(DirectoryStore(directory), keep)


def data_file(directory: Path, global_t: int) -> Path:
    (path,) = directory.glob(f"cp-{global_t}.*.safetensors")
    return path


def restored_step(directory: Path) -> int | None:
    found = saver(directory).restore_latest()
    if found is None:
        return None
    np.testing.assert_array_equal(found.tensors["w"], np.full((3, 4), found.global_t, np.float32))
    return found.global_t


def steps(directory: Path) -> list[int]:
    return sorted(int(path.name[3:-5]) for path in directory.glob("cp-*.json"))


def test_the_package_exports_these_names():
    assert package.__all__ == ["BlobStore", "CheckpointSaver", "DirectoryStore", "S3Store"]


def test_a_checkpoint_comes_back_as_it_was_saved(tmp_path):
    strided = np.arange(24, dtype=np.float32).reshape(4, 6).T[::2]
    tensors = {
        "float32": np.array([[1.5, -0.0], [np.nan, np.inf]], np.float32),
        "float64": np.array([1e-310]),
        "int64 scalar": np.array(2**62),
        "bool": np.array([True, False]),
        "empty": np.zeros((0, 3), np.float32),
        "strided": strided,
        "fortran": np.asfortranarray(strided),
        "big endian": np.arange(3, dtype=">f4"),
    }
    saver(tmp_path).save(replace(checkpoint(7), tensors=tensors))

    found = saver(tmp_path).restore_latest()

    assert found is not None
    assert (found.global_t, found.version) == (7, 14)
    assert dict(found.fingerprint) == FINGERPRINT
    assert set(found.tensors) == set(tensors)
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(found.tensors[name], tensor)
        assert found.tensors[name].shape == tensor.shape
        assert found.tensors[name].dtype == tensor.dtype.newbyteorder("=")


def test_restored_tensors_can_be_trained_on(tmp_path):
    saver(tmp_path).save(checkpoint(7))
    found = saver(tmp_path).restore_latest()
    assert found is not None
    found.tensors["w"][:] += 1
    assert found.tensors["w"][0, 0] == 8


def test_the_manifest_says_what_the_checkpoint_is(tmp_path):
    saver(tmp_path).save(checkpoint(7))
    manifest = json.loads((tmp_path / "cp-7.json").read_text())
    assert set(manifest) == {
        *("format", "global_t", "version", "fingerprint"),
        *("data", "size", "sha256", "relaax", "saved_at"),
    }
    assert manifest["format"] == 1
    assert manifest["data"] == data_file(tmp_path, 7).name
    assert manifest["data"] == f"cp-7.{manifest['sha256'][:12]}.safetensors"
    assert manifest["saved_at"].endswith("+00:00")


def test_an_empty_place_holds_no_checkpoint(tmp_path):
    assert saver(tmp_path).restore_latest() is None


def test_the_highest_step_is_the_latest_whatever_its_digits(tmp_path):
    for global_t in (9, 1000, 99, 100):
        saver(tmp_path).save(checkpoint(global_t))
    assert restored_step(tmp_path) == 1000


def test_restoring_changes_nothing(tmp_path):
    saver(tmp_path).save(checkpoint(1))
    saver(tmp_path).save(checkpoint(2))
    (tmp_path / "cp-2.json").write_bytes(b"garbage")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert restored_step(tmp_path) == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


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
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


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


def test_when_all_are_damaged_each_is_warned_of_and_none_is_restored(tmp_path, caplog):
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


def test_a_place_that_refuses_is_not_taken_for_an_empty_one(tmp_path):
    class Refusing(DirectoryStore):
        def get(self, name):
            raise CheckpointError("permission denied")

    saver(tmp_path).save(checkpoint(1))
    with pytest.raises(CheckpointError, match="permission denied"):
        CheckpointSaver(Refusing(tmp_path)).restore_latest()


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


def test_files_of_other_names_are_nobody_elses_to_delete(tmp_path):
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


def test_saving_a_step_again_replaces_it(tmp_path):
    one = saver(tmp_path)
    one.save(checkpoint(5, value=1.0))
    one.save(checkpoint(5))
    one.save(checkpoint(5))
    assert restored_step(tmp_path) == 5
    assert len(list(tmp_path.iterdir())) == 2


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


@pytest.mark.parametrize(
    "fingerprint",
    [{"sizes": (1, 2)}, {"rate": float("nan")}, {"rate": np.float32(1)}, {7: "seven"}],
)
def test_a_fingerprint_that_json_would_change_is_refused(tmp_path, fingerprint):
    with pytest.raises(CheckpointError, match=str(next(iter(fingerprint)))):
        saver(tmp_path).save(replace(checkpoint(1), fingerprint=fingerprint))
    assert list(tmp_path.iterdir()) == []


def test_a_tensor_that_the_format_does_not_know_is_refused(tmp_path):
    tensors = {"text": np.array(["a"])}
    with pytest.raises(CheckpointError, match="text"):
        saver(tmp_path).save(replace(checkpoint(1), tensors=tensors))


def test_a_negative_step_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="-1"):
        saver(tmp_path).save(checkpoint(-1))


def test_keeping_none_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="is 0"):
        saver(tmp_path, keep=0)


def test_neither_saver_nor_metrics_import_tensorflow():
    program = (
        "import sys, relaax.server.common.saver, relaax.server.parameter_server.metrics\n"
        "assert not [name for name in sys.modules if name.startswith('tensorflow')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
