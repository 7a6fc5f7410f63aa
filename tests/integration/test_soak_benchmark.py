"""The program that lets every kind of process fail, as it is started by hand, for a minute."""

import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest
from balancer import NEEDS_HAPROXY
from processes import REPOSITORY, free_port

from relaax.checkpoints.aws import s3_client
from relaax.configuration import AwsAccess

pytestmark = [pytest.mark.integration, NEEDS_HAPROXY]

DEADLINE_S = 300.0

#: Within a minute this one kills a shard, a replay server, a worker, an actor, an RLX server and
#: the S3 server, stops HAProxy, and cuts the learner and a client off.
SEED = 91952


def test_a_minute_of_faults_loses_no_step_that_is_not_accounted_for(tmp_path):
    with subprocess.Popen(
        [sys.executable, REPOSITORY / "benchmarks" / "soak.py", "--seconds", "60",
         "--seed", str(SEED), "--guarded", "--directory", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as soak:  # fmt: skip
        try:
            said, _ = soak.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            soak.send_signal(signal.SIGTERM)
            said, _ = soak.communicate(timeout=DEADLINE_S)
    print(said)
    assert soak.returncode == 0
    assert said.count("holds  ") == 12
    assert "certificates and tokens are renewed" in said
    sent, counted = map(int, re.search(r"(\d+) sent = (\d+) counted", said).groups())
    assert sent >= counted > 0


def test_the_s3_server_has_what_it_was_given_before_it_was_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "soak")
    address, recording = f"127.0.0.1:{free_port()}", tmp_path / "s3.recording"
    client = s3_client(AwsAccess(endpoint_url=f"http://{address}"))
    with s3_server(address, recording) as server:
        client.create_bucket(Bucket="soak")
        first = client.put_object(Bucket="soak", Key="a/b", Body=b"\0first")
        client.put_object(Bucket="soak", Key="deleted", Body=b"")
        client.delete_object(Bucket="soak", Key="deleted")
        server.kill()
    with recording.open("a") as file:
        file.write('{"method": "PUT", "url": "http')  # what is killed may be writing
    with s3_server(address, recording) as server:
        (found,) = client.list_objects_v2(Bucket="soak")["Contents"]
        assert (found["Key"], found["ETag"]) == ("a/b", first["ETag"])
        assert client.get_object(Bucket="soak", Key="a/b")["Body"].read() == b"\0first"
        server.terminate()
        assert server.wait(DEADLINE_S) == 0


@contextlib.contextmanager
def s3_server(address, recording):
    program = REPOSITORY / "benchmarks" / "soak_s3.py"
    with subprocess.Popen(
        [sys.executable, program, address, recording], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout.readline().startswith(f"serving at {address}")
            yield server
        finally:
            server.kill()
