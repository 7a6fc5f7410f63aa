"""``relaax-train --on slurm``: the processes of a Procfile on two nodes of a real Slurm cluster."""

import re
import shlex
import signal
import sys
from collections.abc import Iterator

import psutil
import pytest
from networks import NEEDS_NAMESPACES
from processes import COMMANDS, FAST_DA3C, SMALL_DA3C, Training
from slurm import NEEDS_SLURM, Slurm, cluster

pytestmark = [pytest.mark.integration, NEEDS_NAMESPACES, NEEDS_SLURM]

#: To learn CartPole.
DEADLINE_S = 240.0


@pytest.fixture(name="slurm")
def _slurm(training: Training) -> Iterator[Slurm]:
    with cluster(training, 2) as slurm:
        yield slurm


def command(training: Training, *flags: str) -> list[str]:
    """Return the command that trains on both nodes, with a Procfile of three lines."""
    training.workers = 1
    lines = {
        "ps": f"exec relaax-parameter-server --config {training.yaml}",
        "rlx": f"exec relaax-rlx-server --config {training.yaml}",
        "env": f"exec {sys.executable} -m relaax.client.gymnasium_runner --env CartPole-v1"
        f" --count 2 --seed $RELAAX_COPY --rlx-server {training.rlx_server_url}",
    }
    path = training.directory / "Procfile"
    path.write_text("".join(f"{name}: {line}\n" for name, line in lines.items()))
    return [str(COMMANDS / "relaax-train"), str(path), "--on", "slurm", *flags]


def test_a_batch_job_trains_cartpole_on_two_nodes_to_the_end(training: Training, slurm: Slurm):
    training.access = {"insecure": True}
    training.configure(FAST_DA3C, {"goal-return": 150})
    program, log = command(training, "--concurrency", "env=2"), training.directory / "job.log"
    flags = ["--nodes=2", "--ntasks=2", "--exclusive", f"--output={log}", "--wait"]
    job = slurm.run("sbatch", ["sbatch", *flags, "--wrap", shlex.join(program)])
    status = job.wait(DEADLINE_S)
    said = log.read_text()
    assert status == 0, said
    assert "4 environments on 4 connections" in said
    assert "the mean return has reached its goal" in said
    serving = re.findall(r"serving at (10\.77\.0\.\d+):", said)
    from_hosts = re.findall(r"serves (10\.77\.0\.\d+):", said)
    assert len({*serving, *from_hosts}) == 2  # on both nodes
    assert "Traceback" not in said


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_stops_everything(
    training: Training, slurm: Slurm, number: signal.Signals, status: int
):
    training.access = {"insecure": True}
    training.configure(SMALL_DA3C)
    flags = ["--nodes=2", "--ntasks=2", "--exclusive"]
    job = slurm.run("salloc", ["salloc", *flags, *command(training)])
    job.says("training: step [1-9]")
    (launcher,) = psutil.Process(job.pid).children()
    launcher.send_signal(number)
    assert job.wait() == status
    assert "stopped by a signal: global step" in job.output()
    assert list(training.checkpoints.glob("cp-*.safetensors"))
