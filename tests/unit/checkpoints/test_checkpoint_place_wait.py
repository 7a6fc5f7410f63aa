"""Waiting for a store that does not answer when a server starts."""

import threading

import pytest
from processes import free_port, wait_for

from relaax.checkpoints.checkpoint_place import wait_for_store
from relaax.configuration import AwsAccess, S3Location
from relaax.errors import CheckpointError

PLACE = S3Location("my-bucket", "training")


@pytest.fixture(name="away")
def _away(monkeypatch: pytest.MonkeyPatch) -> AwsAccess:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return AwsAccess(endpoint_url=f"http://127.0.0.1:{free_port()}")


def test_without_a_store_far_away_nothing_is_waited_for():
    assert wait_for_store(None, AwsAccess(), 0, threading.Event())


def test_a_stop_ends_the_wait(away: AwsAccess, caplog: pytest.LogCaptureFixture):
    stop, ended = threading.Event(), []
    thread = threading.Thread(
        target=lambda: ended.append(wait_for_store(PLACE, away, 60, stop)), daemon=True
    )
    thread.start()
    wait_for(lambda: "waiting for the store of checkpoints: " in caplog.text, "a warning")
    stop.set()
    thread.join(30)
    assert ended == [False]


def test_after_long_enough_it_is_given_up(away: AwsAccess):
    with pytest.raises(CheckpointError, match=r"my-bucket.*did not answer for 0 s \(--give-up\)"):
        wait_for_store(PLACE, away, 0, threading.Event())
