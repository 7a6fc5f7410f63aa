"""Places of checkpoints, and those below them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from relaax.checkpoints import checkpoint_place
from relaax.checkpoints.checkpoint_place import existing_store, store_of
from relaax.configuration import AwsAccess, S3Location


@pytest.mark.parametrize("key", ["training", "training/", "/training"])
@pytest.mark.parametrize(("below", "where"), [("", ""), ("shard-2-of-3", "shard-2-of-3/")])
def test_a_place_in_s3_is_read_where_it_was_written(monkeypatch, key, below, where):
    client = SimpleNamespace(list_objects_v2=lambda **_: None)
    monkeypatch.setattr(checkpoint_place, "s3_client", lambda _: client)
    place = None, S3Location("bucket", key), AwsAccess()
    stores = store_of(*place, below), existing_store(*place, "--exploit", below)
    assert [store.location() for store in stores] == [f"s3://bucket/training/{where}"] * 2


def test_a_place_below_a_directory_is_a_directory(tmp_path: Path):
    store = store_of(tmp_path, None, AwsAccess(), "replay")
    assert store.location() == str(tmp_path / "replay")
    assert store_of(None, None, AwsAccess(), "replay") is None
