"""What is saved comes back, and what would not come back is refused."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from checkpoints import FINGERPRINT, checkpoint, data_file, restored_step, saver

import relaax.checkpoints as package
from relaax.errors import CheckpointError, ConfigurationError


def test_the_package_exports_these_names():
    assert package.__all__ == [
        "BlobStore", "CheckpointSaver", "DirectoryStore", "MeanReturn", "Restore", "S3Store",
    ]  # fmt: skip


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


def test_the_manifest_describes_the_checkpoint(tmp_path):
    saver(tmp_path).save(checkpoint(7))
    manifest = json.loads((tmp_path / "cp-7.json").read_text())
    assert set(manifest) == {
        *("format", "global_t", "version", "fingerprint"),
        *("data", "size", "sha256", "relaax", "saved_at", "until_next"),
        *("mean_return", "episodes", "senders", "check"),
    }
    assert manifest["format"] == 1
    assert manifest["data"] == data_file(tmp_path, 7).name
    assert manifest["data"] == f"cp-7.{manifest['sha256'][:12]}.safetensors"
    assert manifest["saved_at"].endswith("+00:00")


def test_an_empty_store_holds_no_checkpoint(tmp_path):
    assert saver(tmp_path).restore_latest() is None


def test_the_highest_step_is_the_latest_whatever_its_digits(tmp_path):
    for global_t in (9, 1000, 99, 100):
        saver(tmp_path).save(checkpoint(global_t))
    assert restored_step(tmp_path) == 1000


def test_saving_a_step_again_replaces_it(tmp_path):
    one = saver(tmp_path)
    one.save(checkpoint(5, value=1.0))
    one.save(checkpoint(5))
    one.save(checkpoint(5))
    assert restored_step(tmp_path) == 5
    assert len(list(tmp_path.iterdir())) == 2


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


def test_a_saver_must_keep_one_checkpoint_or_more(tmp_path):
    with pytest.raises(ConfigurationError, match="is 0"):
        saver(tmp_path, keep=0)


def test_neither_saver_nor_metrics_import_tensorflow():
    program = (
        "import sys, relaax.checkpoints, relaax.telemetry.training\n"
        "assert not [name for name in sys.modules if name.startswith('tensorflow')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
