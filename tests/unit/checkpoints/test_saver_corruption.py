"""Whatever happens to the bytes of a checkpoint: it comes back as it was saved, or not at all."""

import shutil

import numpy as np
import pytest
from checkpoints import FINGERPRINT, checkpoint, data_file, saver

KINDS = {
    "manifest": lambda directory: directory / "cp-2.json",
    "data": lambda directory: data_file(directory, 2),
}


@pytest.fixture(name="directory", scope="module")
def _directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("saved")
    for step in (1, 2):
        saver(directory).save(checkpoint(step))
    return directory


def require_first_or_second(directory) -> int:
    """One of the two loads, and it is as it was saved; return which."""
    found = saver(directory).restore_latest()
    expected = checkpoint(found.global_t)
    assert (found.global_t, found.version) in ((1, 2), (2, 4))
    assert found.fingerprint == FINGERPRINT
    assert found.tensors.keys() == expected.tensors.keys()
    for name, tensor in expected.tensors.items():
        np.testing.assert_array_equal(found.tensors[name], tensor)
    return found.global_t


@pytest.mark.parametrize("kind", KINDS)
def test_cut_at_any_length_it_is_skipped(directory, kind):
    path = KINDS[kind](directory)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert require_first_or_second(directory) == 1, length
    path.write_bytes(content)
    assert require_first_or_second(directory) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_with_any_byte_changed_it_is_skipped_or_says_the_same(directory, kind):
    path = KINDS[kind](directory)
    content = path.read_bytes()
    skipped = 0
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1 << position % 8
        path.write_bytes(changed)
        skipped += require_first_or_second(directory) == 1
    path.write_bytes(content)
    assert skipped >= 0.7 * len(content)  # not so: spaces of JSON, and an escape's letters


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hole", [b"\0", b"\xff"])
def test_with_a_hole_anywhere_it_is_skipped(directory, tmp_path, kind, hole):
    """As a file system leaves it that has lost a block."""
    place = tmp_path / "place"
    shutil.copytree(directory, place)
    path = KINDS[kind](place)
    content = path.read_bytes()
    for begin in range(0, len(content), 16):
        size = len(content[begin : begin + 16])
        if content[begin : begin + size] != hole * size:
            path.write_bytes(content[:begin] + hole * size + content[begin + size :])
            assert require_first_or_second(place) == 1, begin


def test_the_newest_is_that_of_the_highest_step_whatever_the_clock_says(tmp_path, monkeypatch):
    for step, year in ((1, 2040), (2, 1980), (3, 2010)):
        moment = f"{year}-01-01T00:00:00+00:00"
        monkeypatch.setattr("relaax.checkpoints.manifest.now", lambda said=moment: said)
        one = saver(tmp_path, keep=2)
        one.restore_latest()
        one.save(checkpoint(step))
    assert require_last_two(tmp_path) == {2, 3}


def require_last_two(directory):
    steps = saver(directory).steps()
    assert saver(directory).restore_latest().global_t == max(steps)
    return steps
