"""No process makes objects of what it reads: neither from the network, nor from files."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from processes import SMALL_SAC, Training, free_port, wait_for

from relaax.parameters import Bridge

pytestmark = pytest.mark.integration

WATCH = Path(__file__).parents[1] / "unpickling"

PROGRAM = """
import pickle, textwrap
pickle.loads(pickle.dumps([1, "text"]))  # numbers and texts run nothing
pickle.loads(pickle.dumps(textwrap.dedent))
"""


@pytest.fixture(name="watched")
def _watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where each process that is started says what it runs, and what it unpickles."""
    folder = tmp_path / "watched"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(WATCH))
    monkeypatch.setenv("RELAAX_UNPICKLED", str(folder))
    return folder


def lines(folder: Path, word: str) -> list[str]:
    listed = [line for file in folder.iterdir() for line in file.read_text().splitlines()]
    return [line.removeprefix(word) for line in listed if line.startswith(word)]


def test_a_process_that_unpickles_a_function_is_seen(watched: Path) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ, check=True)
    assert lines(watched, "unpickles ") == ["textwrap.dedent in __main__"]


def test_no_process_of_a_training_unpickles_anything(
    training: Training, bridge: Bridge, watched: Path
) -> None:
    """All kinds of them, a worker for each connection, and checkpoints that are restored."""
    url = f"127.0.0.1:{free_port()}"
    saving = {"checkpoint-interval": 0.5}
    training.configure(
        SMALL_SAC,
        saving,
        learner={"replay-servers": [url], **saving},
        replay_server={"checkpoint-dir": str(training.directory / "replay"), **saving},
    )
    saves = [training.start_parameter_server(), training.start_replay_server(url)]
    training.start_learner()
    training.start_rlx_server()
    playing = [
        training.start_environments(1, env="Pendulum-v1", is_paced=True),
        training.start_actors(1, env="Pendulum-v1"),
    ]

    def learnt() -> int:
        info = bridge.pull().info
        return info.iteration if info else 0

    wait_for(lambda: learnt() > 20, "learning")
    for process in playing:
        process.says("connected 1 of 1")
    for server in saves:
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    assert training.start_parameter_server().says(r"global step is ([\d,]+)")[1] != "0"
    training.start_replay_server(url)

    commands = Counter(
        word.rpartition("/")[2]
        for line in lines(watched, "runs ")
        for word in line.split()
        if "relaax-" in word or word.endswith("gymnasium_runner")
    )
    for command, least in {
        "relaax-parameter-server": 2,
        "relaax-replay-server": 2,
        "relaax-learner": 1,
        "relaax-rlx-server": 3,  # with its watcher and a worker
        "relaax-actor": 1,
        "relaax.client.gymnasium_runner": 1,
    }.items():
        assert commands[command] >= least, (command, commands)
    assert lines(watched, "unpickles ") == []
