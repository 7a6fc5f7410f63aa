"""Checkpoints in a directory: temporary files, permissions, errors."""

import fcntl
from pathlib import Path

import pytest

from relaax.checkpoints import DirectoryStore
from relaax.errors import CheckpointError, ConfigurationError, DamagedCheckpoint


def test_a_blob_is_replaced_renamed_and_deleted(tmp_path):
    store = DirectoryStore(tmp_path)
    store.put("a", b"1")
    store.put("a", b"2")
    store.rename("a", "b")
    assert store.names() == ["b"]
    assert store.get("b") == b"2"
    store.delete("b")
    store.delete("b")
    assert store.names() == []
    with pytest.raises(DamagedCheckpoint, match="b is missing"):
        store.get("b")


def test_the_umask_decides_who_can_read_checkpoints(tmp_path):
    (tmp_path / "ordinary").touch()
    DirectoryStore(tmp_path).put("a", b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_the_directory_is_made(tmp_path):
    store = DirectoryStore(tmp_path / "deep" / "er")
    store.put("a", b"1")
    assert (tmp_path / "deep" / "er" / "a").read_bytes() == b"1"
    assert store.location() == str(tmp_path / "deep" / "er")


def test_temporary_files_of_killed_runs_are_removed_at_the_start(tmp_path):
    (tmp_path / ".tmp-0123-cp-1.json").write_bytes(b"half")
    (tmp_path / "other").write_bytes(b"mine")
    assert DirectoryStore(tmp_path).names() == ["other"]
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_the_temporary_file_of_a_running_writer_stays(tmp_path):
    temporary = tmp_path / ".tmp-0123-cp-1.json"
    with temporary.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert DirectoryStore(tmp_path).names() == []
        assert temporary.exists()
    DirectoryStore(tmp_path)
    assert not temporary.exists()


def test_a_full_disk_is_a_checkpoint_error_and_leaves_the_old_blob(tmp_path, monkeypatch):
    store = DirectoryStore(tmp_path)
    store.put("a", b"old")

    def no_space(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(CheckpointError, match="No space left"):
        store.put("a", b"new")
    assert store.get("a") == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_bad_sector_damages_one_blob_and_a_refusal_is_an_error(tmp_path, monkeypatch):
    store = DirectoryStore(tmp_path)

    def failing(number, text):
        def read_bytes(_):
            raise OSError(number, text)

        return read_bytes

    monkeypatch.setattr(Path, "read_bytes", failing(5, "Input/output error"))
    with pytest.raises(DamagedCheckpoint, match="Input/output error"):
        store.get("a")
    monkeypatch.setattr(Path, "read_bytes", failing(13, "Permission denied"))
    with pytest.raises(CheckpointError, match="Permission denied") as refusal:
        store.get("a")
    assert not isinstance(refusal.value, DamagedCheckpoint)


def test_a_file_in_the_directorys_place_is_a_configuration_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="file"):
        DirectoryStore(tmp_path / "file")


def test_a_directory_that_vanishes_is_a_checkpoint_error(tmp_path):
    store = DirectoryStore(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(CheckpointError, match="gone"):
        store.names()
    with pytest.raises(CheckpointError, match="gone"):
        store.put("a", b"")
