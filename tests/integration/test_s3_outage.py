"""S3 goes away in the middle of a training, and comes back: nothing stops."""

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from processes import SMALL_DA3C, SMALL_SAC, Process, Training, free_port, wait_for

from relaax.checkpoints.aws import s3_client
from relaax.configuration import AwsAccess
from relaax.parameters import Bridge

pytestmark = pytest.mark.integration

BUCKET, KEY = "my-bucket", "training/checkpoints"
SECRET = "wJalrXUtnFEMI"  # noqa: S105 (of Amazon's documentation)
TOKEN = "token-of-a-role-that-no-log-may-show"  # noqa: S105


class S3:
    """An emulator at one port; what it holds stays while it is away."""

    def __init__(self) -> None:
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.begin()
        self._client = s3_client(AwsAccess(endpoint_url=self.url))
        self._client.create_bucket(Bucket=BUCKET)

    def begin(self) -> None:
        self._server = ThreadedMotoServer("127.0.0.1", port=self._port, verbose=False)
        self._server.start()

    def end(self) -> None:
        self._server.stop()

    def steps(self) -> set[int]:
        """The steps of the checkpoints that it holds."""
        found = self._client.list_objects_v2(Bucket=BUCKET, Prefix=f"{KEY}/cp-")
        names = [each["Key"].rpartition("/")[2] for each in found.get("Contents", [])]
        return {int(name[3:-5]) for name in names if name.endswith(".json")}


@pytest.fixture(name="s3")
def _s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    found = S3()
    yield found
    found.end()


def configure(training: Training, s3: S3) -> None:
    """Let the parameter server save to S3 every second."""
    training.configure(
        SMALL_DA3C,
        {
            "checkpoint-dir": None,
            "checkpoint-aws-s3": [BUCKET, KEY],
            "checkpoint-interval": 1.0,
            "aws-endpoint-url": s3.url,
        },
    )


def start(training: Training, s3: S3, *flags: str) -> Process:
    configure(training, s3)
    return training.start_parameter_server(*flags)


def test_a_training_goes_on_while_s3_is_away_and_saves_when_it_is_back(training: Training, s3: S3):
    parameter_server = start(training, s3)
    training.start_rlx_server()
    training.start_environments(2, is_paced=True)
    wait_for(s3.steps, "the first checkpoint")
    s3.end()
    parameter_server.says("no checkpoint was saved in s3://my-bucket/training/checkpoints/: ")
    with closing(Bridge(training.parameter_server_url)) as bridge:
        reached = bridge.add(0)
        wait_for(lambda: bridge.add(0) > reached + 100, "more steps")
    s3.begin()
    known = s3.steps()
    wait_for(lambda: s3.steps() - known, "a new checkpoint")
    parameter_server.signal(signal.SIGTERM)
    assert parameter_server.wait() == 0
    (last,) = {max(s3.steps())}
    assert f"global step {last:,}; " in parameter_server.output()
    assert SECRET not in parameter_server.output()


def test_one_that_ends_while_s3_is_away_says_so_and_the_next_one_waits_for_it(
    training: Training, s3: S3
):
    parameter_server = start(training, s3)
    with closing(Bridge(training.parameter_server_url)) as worker:
        first = worker.increment_global_t(10)
        wait_for(lambda: first in s3.steps(), "a checkpoint")
        s3.end()
        worker.increment_global_t(10)
    parameter_server.signal(signal.SIGTERM)
    assert parameter_server.wait(120) == 1
    assert "saving failed (CheckpointError: cannot " in parameter_server.output()
    again = training.start_command("relaax-parameter-server")
    again.says("waiting for the store of checkpoints: ")
    s3.begin()
    again.says(f"restored global step {first:,} from")


def test_a_server_that_another_one_has_replaced_saves_nothing_more(training: Training, s3: S3):
    old = start(training, s3)
    with closing(Bridge(training.parameter_server_url)) as worker:
        first = worker.increment_global_t(10)  # what another test has saved is there, too
        wait_for(lambda: first in s3.steps(), "a checkpoint")
        url = f"127.0.0.1:{free_port()}"
        new = start(training, s3, "--bind", url)
        new.says(f"global step is {first}\n")
        with closing(Bridge(url)) as other:
            other.increment_global_t(5)
            wait_for(lambda: first + 5 in s3.steps(), "a checkpoint of the other")
            worker.increment_global_t(10)
            old.says("saves to .*, too, and began later: this process saves nothing there any more")
            worker.increment_global_t(10)
            old.says("no checkpoint was saved in ")
            last = other.increment_global_t(7)
            wait_for(lambda: last in s3.steps(), "one more checkpoint of the other")
        assert not s3.steps() & {first + 10, first + 20}


@pytest.mark.parametrize(("is_right", "keys"), [(True, "environment"), (False, "file")])
def test_no_process_says_the_keys(
    training: Training, s3: S3, is_right: bool, keys: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    """At the highest level of the log; those of a role come with a token."""
    place = {
        "checkpoint-dir": None, "aws-endpoint-url": s3.url, "log-level": "DEBUG",
    }  # fmt: skip
    if keys == "file":
        place["aws-keys"] = str(tmp_path / "keys.yaml")
        (tmp_path / "keys.yaml").write_text(f"access: AKIAEXAMPLE\nsecret: {SECRET}\n")
    else:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ASIAEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    bucket = BUCKET if is_right else "no-such-bucket"
    replay_url = f"127.0.0.1:{free_port()}"
    training.configure(
        SMALL_SAC,
        {**place, "checkpoint-aws-s3": [bucket, "ps"]},
        learner={
            **place, "checkpoint-aws-s3": [bucket, "learner"], "replay-servers": [replay_url]
        },
        replay_server={**place, "checkpoint-aws-s3": [bucket, "replay"], "bind": replay_url},
    )  # fmt: skip
    commands = ("relaax-parameter-server", "relaax-replay-server", "relaax-learner")
    servers = [training.start_command(command) for command in commands]
    for server in servers:
        if is_right:
            server.says(r"global step is|storing what is|learning from|waiting for")
            server.signal(signal.SIGTERM)
        else:
            assert server.wait() in (1, 2)
    for server in servers:
        server.wait()
        assert server.output()
        assert SECRET not in server.output()
        assert TOKEN not in server.output()
