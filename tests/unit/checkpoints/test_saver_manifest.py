"""A manifest describes a checkpoint, and refuses data that it does not describe."""

import json

import pytest
from checkpoints import checkpoint

from relaax.checkpoints.manifest import (
    describe,
    manifest_name,
    parse,
    step_of_data,
    step_of_manifest,
)
from relaax.errors import CheckpointMismatch, DamagedCheckpoint


def test_a_manifest_is_read_as_it_was_written():
    written = describe(checkpoint(42), b"data")
    assert parse(written.to_bytes(), 42) == written
    assert (written.global_t, written.version, written.size) == (42, 84, 4)


def test_the_names_hold_the_step_and_the_name_of_the_data_its_digest():
    manifest = describe(checkpoint(42), b"data")
    assert manifest.name() == manifest_name(42) == "cp-42.json"
    assert manifest.data == f"cp-42.{manifest.sha256[:12]}.safetensors"
    assert step_of_manifest(manifest.name()) == step_of_data(manifest.data) == 42


@pytest.mark.parametrize(
    "name", ["cp-042.json", "cp-.json", "cp-1.json.bak", "damaged-cp-1.json", "cp-1.safetensors"]
)
def test_other_names_have_no_step(name):
    assert step_of_manifest(name) is None
    assert step_of_data(name) is None


def test_step_0_is_a_step():
    assert step_of_manifest("cp-0.json") == 0
    assert step_of_data("cp-0.0123456789ab.safetensors") == 0


@pytest.mark.parametrize(
    ("data", "reason"), [(b"dat", "has 3 bytes instead of 4"), (b"dato", "has sha256 ")]
)
def test_other_data_is_refused(data, reason):
    manifest = describe(checkpoint(42), b"data")
    manifest.verify(b"data")
    with pytest.raises(DamagedCheckpoint, match=reason):
        manifest.verify(data)


def test_a_newer_format_is_refused_even_if_its_other_keys_are_unknown():
    with pytest.raises(CheckpointMismatch, match="Use the RELAAX that wrote it"):
        parse(json.dumps({"format": 2, "shards": []}).encode(), 42)
