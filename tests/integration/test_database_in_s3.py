"""Parameter databases in S3: an emulator (moto) answers over HTTP."""

import signal

import pytest
from moto.server import ThreadedMotoServer
from parameter_databases import NAME, values
from processes import SMALL_PPO, Training, wait_for

from relaax.checkpoints.aws import s3_client
from relaax.checkpoints.s3_store import TakenOver
from relaax.configuration import AwsAccess, S3Location
from relaax.errors import NoSuchVersion
from relaax.parameters import Bridge
from relaax.parameters.database import DatabaseRoot

pytestmark = pytest.mark.integration


@pytest.fixture(name="root")
def _root(monkeypatch, request):
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    access = AwsAccess(endpoint_url=f"http://{host}:{port}")
    client = s3_client(access)
    client.create_bucket(Bucket="bucket")
    yield DatabaseRoot(S3Location("bucket", request.node.name), aws=access)
    client.close()
    server.stop()


def test_versions_tags_names_and_garbage_are_as_in_a_directory(root):
    other = NAME._replace(policy="other")
    with root.writer(NAME, "a", keep_untagged=1) as writer, root.writer(other, "b") as clone:
        for version in range(4):
            writer.push(values(version), version, ["kept"] if version == 1 else [])
        assert writer.gc() == [0, 2]
        clone.clone(root.reader(NAME))
    assert root.list_names() == [NAME, other]
    for name in (NAME, other):
        reader = root.reader(name)
        assert reader.list_versions() == [1, 3]
        assert reader.list_tags() == {"latest": 3, "kept": 1}
        assert reader.get("kept").values.global_t == 10
        with pytest.raises(NoSuchVersion):
            reader.get(2)


def test_the_writer_that_came_first_changes_nothing_any_more(root):
    with root.writer(NAME, "the first") as first:
        first.push(values(1), 1)
        with root.writer(NAME, "the second") as second:
            for version in (2, 3):
                with pytest.raises(TakenOver, match=r"saves to s3://bucket/test_.*/trial-1/main/"):
                    first.push(values(version), version)
            second.push(values(2), 2)
    assert root.reader(NAME).list_versions() == [1, 2]


def test_a_training_pushes_its_last_version_when_it_ends(
    root: DatabaseRoot, training: Training, bridge: Bridge
):
    training.configure(SMALL_PPO, {
        "database-aws-s3": list(root.place), "aws-endpoint-url": root.aws.endpoint_url,
        "database-name": "/".join(NAME), "push-frequency-steps": 1,
    })  # fmt: skip
    server = training.start_parameter_server()
    training.start_learner()
    training.start_actors(1)
    published = wait_for(lambda: (i := bridge.pull().info) and i.iteration, "an update")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    reader = root.reader(NAME)
    assert reader.version_of() >= published
    assert len(reader.list_tags()) > 1
