"""A process that saves is killed at each boundary of what it writes; the next one restores."""

from collections.abc import Iterator

import forking_programs
import pytest
from moto.server import ThreadedMotoServer
from processes import REPOSITORY, free_port

from relaax.checkpoints.aws import s3_client
from relaax.configuration import AwsAccess

pytestmark = pytest.mark.integration

BOUNDARIES = [
    "saver.data",
    "saver.manifest",
    "saver.written",
    "saver.delete",
    "saver.aside",
    "directory.write",
    "directory.sync",
    "directory.replace",
    "directory.replaced",
]

BUCKET = "my-bucket"

PREAMBLE = f"""
import os, shutil, signal, sys
from pathlib import Path
sys.path.insert(0, {str(REPOSITORY / "tests")!r})
import failpoints
from checkpoints import checkpoint, data_file, restored_step, saver, steps

def is_killed(fault, save):
    '''Save in a process of its own; return whether the failpoint has killed it.'''
    if not (pid := os.fork()):
        os.environ[failpoints.VARIABLE] = fault
        failpoints.install()
        save()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return status != 0

def kills(point, prepare, save, check):
    '''Kill it when it passes ``point`` for the first, the second, the N-th time.'''
    count = 0
    while True:
        prepare()
        killed = is_killed(f"{{point}}=kill@{{count + 1}}", save)
        check()
        if not killed:
            return count
        count += 1
"""


@pytest.mark.parametrize("keep", [1, 2])
def test_the_newest_whole_checkpoint_of_a_directory_loads_after_each_kill(tmp_path, keep):
    program = f"""
        place = Path({str(tmp_path / "place")!r})

        def prepare():
            shutil.rmtree(place, ignore_errors=True)
            for step in (100, 200, 300):
                saver(place, 3).save(checkpoint(step))
            data_file(place, 300).write_bytes(b"damaged")

        def save():
            one = saver(place, {keep})
            assert one.restore_latest().global_t == 200
            one.save_until_next(checkpoint(250))
            one.save(checkpoint(260))

        def check():
            assert restored_step(place) in (200, 250, 260)
            again = saver(place, {keep})
            before = again.restore_latest().global_t
            again.save(checkpoint(400))
            assert restored_step(place) == 400
            assert steps(place)[-2:] in ([400], [before, 400], [200, 400])
            aside = [path.read_bytes() for path in place.glob("damaged-*")]
            assert b"damaged" in aside
            left = [path.name for path in place.iterdir() if not path.name.startswith("damaged-")]
            assert len(left) == 2 * len(steps(place)), left

        for point in {BOUNDARIES!r}:
            count = kills(point, prepare, save, check)
            assert count, point
            print(point, "kills", count)
    """
    print(forking_programs.run(PREAMBLE, program).stdout)


@pytest.fixture(name="s3_url")
def _s3_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    port = free_port()
    server = ThreadedMotoServer("127.0.0.1", port=port, verbose=False)
    server.start()
    url = f"http://127.0.0.1:{port}"
    s3_client(AwsAccess(endpoint_url=url)).create_bucket(Bucket=BUCKET)
    yield url
    server.stop()


def test_the_newest_whole_checkpoint_of_s3_loads_after_each_kill(s3_url):
    program = f"""
        from relaax.checkpoints.aws import s3_client
        from relaax.configuration import AwsAccess
        from relaax.checkpoints import CheckpointSaver, S3Store

        number = 0

        def far():
            client = s3_client(AwsAccess(endpoint_url={s3_url!r}))
            return S3Store(client, {BUCKET!r}, f"training/{{number}}", is_owner=True)

        def prepare():
            global number
            number += 1
            CheckpointSaver(far()).save(checkpoint(100))

        def save():
            one = CheckpointSaver(far(), keep=1)
            assert one.restore_latest().global_t == 100
            one.save(checkpoint(200))

        def check():
            one = CheckpointSaver(far(), keep=1)
            assert one.restore_latest().global_t in (100, 200)
            one.save(checkpoint(300))
            assert CheckpointSaver(far()).restore_latest().global_t == 300
            assert len(set(far().names()) - {{"owner"}}) == 2, far().names()

        for point in ["saver.data", "saver.manifest", "saver.written", "saver.delete"]:
            assert kills(point, prepare, save, check), point
    """
    forking_programs.run(PREAMBLE, program)
