"""``relaax-train --on slurm``: the processes of a Procfile on two nodes of a real Slurm cluster."""

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from networks import NEEDS_NAMESPACES, network
from processes import COMMANDS, FAST_DA3C, SMALL_DA3C, Process, Training
from slurm import NEEDS_SLURM, Slurm

pytestmark = [pytest.mark.integration, NEEDS_NAMESPACES, NEEDS_SLURM]

#: To learn CartPole.
DEADLINE_S = 240.0


@pytest.fixture(name="slurm")
def _slurm(training: Training) -> Iterator[Slurm]:
    with network(training) as machines:
        yield Slurm(training, machines, 2)
        left = [each.name() for each in training.survivors() if "slurm" not in each.name()]
        training.close()
        for process in training.survivors():  # what a slurmd that is killed leaves behind
            process.kill()
    assert not left


def train(training: Training, slurm: Slurm, *flags: str) -> Process:
    """Start a training of four processes in an allocation of both nodes."""
    training.workers = 1
    lines = {
        "ps": f"exec relaax-parameter-server --config {training.yaml}",
        "rlx": f"exec relaax-rlx-server --config {training.yaml}",
        "env": f"exec {sys.executable} -m relaax.client.gymnasium_runner --env CartPole-v1"
        f" --count 2 --seed $RELAAX_COPY --rlx-server {training.rlx_server_url}",
    }
    path = training.directory / "Procfile"
    path.write_text("".join(f"{name}: {line}\n" for name, line in lines.items()))
    program = [str(COMMANDS / "relaax-train"), str(path), "--on", "slurm", *flags]
    return slurm.run("salloc", ["salloc", "--nodes=2", "--ntasks=2", "--exclusive", *program])


def test_two_nodes_train_cartpole_to_the_end(training: Training, slurm: Slurm):
    training.configure(FAST_DA3C, {"goal-return": 150})
    job = train(training, slurm, "--concurrency", "env=2")
    job.says(r"4 environments on 4 connections")
    serving = job.says(r"serving at (10\.77\.0\.\d+):")[1]
    assert job.wait(DEADLINE_S) == 0
    assert "the mean return has reached its goal" in job.output()
    from_hosts = set(re.findall(r"serves (10\.77\.0\.\d+):", job.output()))
    assert len(from_hosts | {serving}) == 2  # on both nodes
    assert "Traceback" not in job.output()


def test_a_signal_saves_and_stops_everything(training: Training, slurm: Slurm):
    training.configure(SMALL_DA3C)
    job = train(training, slurm)
    job.says("training: step [1-9]")
    (launcher,) = psutil.Process(job.pid).children()
    launcher.send_signal(signal.SIGTERM)
    assert job.wait() == 143
    assert "stopped by a signal: global step" in job.output()
    assert list(training.checkpoints.glob("cp-*.safetensors"))
    assert not list(Path("/tmp").glob(f"relaax-*/env/{training.yaml.name}"))
