"""A replay server goes on while what it holds is saved, and saves all of it at its end."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import yaml
from processes import SMALL_SAC, free_port
from replay_servers import wait_until

from relaax.checkpoints import CheckpointSaver
from relaax.replay.client.stub import ReplayAway, ReplayStub
from relaax.replay.process import main as server
from relaax.replay.replay_pb2 import Run
from relaax.replay.storage import START

#: There is no learner that draws.
NEVER_FULL = {**SMALL_SAC, "updates_per_step": None}


class SlowSaver:
    """Saves, but goes on with it only when it is allowed to; ``saved`` has the numbers of steps."""

    def __init__(self, monkeypatch):
        self.begun, self.goes_on, self.saved = threading.Event(), threading.Event(), []
        save = CheckpointSaver.save

        def save_slowly(saver, checkpoint):
            self.begun.set()
            assert self.goes_on.wait(20)
            save(saver, checkpoint)
            self.saved.append(len(checkpoint.tensors["storage/rows"]))

        monkeypatch.setattr(CheckpointSaver, "save", save_slowly)


class Served:
    """A replay server on a thread of this process, without a parameter server."""

    def __init__(self, directory, monkeypatch):
        self.stop = threading.Event()
        monkeypatch.setattr(server, "StopSignal", lambda: self.stop)
        monkeypatch.setattr("relaax.configuration.access.start_logging", lambda *names: None)
        monkeypatch.setattr(server, "TEND_S", 0.05)
        self.url = f"127.0.0.1:{free_port()}"
        options = {
            "--bind": self.url,
            "--parameter-server": f"127.0.0.1:{free_port()}",
            "--checkpoint-dir": str(directory / "saved"),
            "--checkpoint-interval": 0.2,
            "--lease": 0.5,
        }
        path = directory / "config.yaml"
        path.write_text(yaml.dump({"relaax-replay-server": options, "algorithm": NEVER_FULL}))
        self._pool = ThreadPoolExecutor(1)
        self.status = self._pool.submit(server.serve, ["--config", str(path)])
        self.stub = ReplayStub(self.url)
        wait_until(self.answers)
        self.schema, _ = self.stub.describe()
        self.stub.open("w", self.schema)

    def answers(self):
        try:
            return bool(self.stub.stats())
        except ReplayAway:
            return False

    def write(self, first, count):
        """Store steps of an episode that begins with number 0."""
        run = Run(environment=0, first=first, count=count)
        flags = np.where(np.arange(first, first + count) == 0, START, 0).astype(np.uint8)
        self.stub.append("w", [run], flags, list(self.schema.rows(count).values()))

    def close(self):
        self.stop.set()
        self._pool.shutdown()
        self.stub.close()


@pytest.fixture(name="saver")
def _saver(monkeypatch):
    return SlowSaver(monkeypatch)


@pytest.fixture(name="served")
def _served(tmp_path, monkeypatch, saver):
    served = Served(tmp_path, monkeypatch)
    yield served
    saver.goes_on.set()
    served.close()


def test_leases_end_while_the_contents_are_saved(served, saver):
    served.write(0, 10)
    assert saver.begun.wait(10)
    wait_until(lambda: served.stub.stats()["writers"] == 0)
    assert saver.saved == []


def test_a_stop_closes_the_port_while_a_save_goes_on_and_saves_the_rest_once(served, saver):
    served.write(0, 10)
    assert saver.begun.wait(10)
    served.write(10, 5)
    served.stop.set()
    wait_until(lambda: not served.answers())
    assert saver.saved == []
    assert not served.status.done()
    saver.goes_on.set()
    assert served.status.result(10) == 0
    assert saver.saved == [10, 15]
    assert not [thread for thread in threading.enumerate() if thread.name == "save the replay"]
