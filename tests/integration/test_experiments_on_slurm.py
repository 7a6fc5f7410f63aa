"""``relaax-experiment run --on slurm``: a trial on two nodes of a real Slurm cluster."""

import re
import shlex
import subprocess
from collections.abc import Iterator

import pytest
from networks import NEEDS_NAMESPACES, network
from processes import COMMANDS, REPOSITORY, Training
from slurm import NEEDS_SLURM, Slurm

pytestmark = [pytest.mark.integration, NEEDS_NAMESPACES, NEEDS_SLURM]

EXAMPLE = REPOSITORY / "examples" / "experiments" / "cartpole.py"
PROGRAM = str(COMMANDS / "relaax-experiment")
DEADLINE_S = 240.0
NODES = ["--nodes=2", "--ntasks=2", "--exclusive"]


@pytest.fixture(name="slurm")
def _slurm(training: Training) -> Iterator[Slurm]:
    with network(training) as machines:
        yield Slurm(training, machines, 2)
        left = [each.name() for each in training.survivors() if "slurm" not in each.name()]
        training.close()
        for process in training.survivors():  # what a slurmd that is killed leaves behind
            process.kill()
    assert not left


def command(training: Training, experiment: str, steps: int) -> list[str]:
    """Return the command that runs an experiment of the example, for fewer steps."""
    words = [PROGRAM, "show", str(EXAMPLE), "-e", experiment]
    shown = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    twin, access = training.directory / "twin.yaml", training.directory / "access.yaml"
    twin.write_text(shown.stdout.replace("60000", str(steps)))
    access.write_text("--insecure: true\n")
    return [PROGRAM, "run", str(twin), "--on", "slurm", "--access", str(access)]


def test_a_batch_job_runs_a_trial_on_two_nodes_to_its_end(training: Training, slurm: Slurm):
    run, log = command(training, "cartpole-remote", 1500), training.directory / "job.log"
    job = slurm.run(
        "sbatch", ["sbatch", *NODES, f"--output={log}", "--wait", "--wrap", shlex.join(run)]
    )
    status = job.wait(DEADLINE_S)
    said = log.read_text()
    assert status == 0, said
    assert "the required number of steps is done" in said
    assert len(set(re.findall(r"choosing at (10\.77\.0\.\d+):", said))) == 2  # on both nodes
    assert "Traceback" not in said


def test_a_trial_in_an_allocation_is_seen_and_stopped_there(training: Training, slurm: Slurm):
    job = slurm.run("salloc", ["salloc", *NODES, *command(training, "cartpole", 10**7)])
    job.says("training: step [1-9]")
    names = ["-e", "cartpole"]
    status = slurm.run("status", [PROGRAM, "status", *names])
    assert status.wait() == 0, status.output()
    rows = [line for line in status.output().splitlines() if " runs " in line]
    assert len(rows) >= 6, status.output()
    stop = slurm.run("stop", [PROGRAM, "stop", *names])
    assert stop.wait() == 0, stop.output()
    assert job.wait() == 143
    assert "stopped by a signal: global step" in job.output()
    trials = training.directory / "training" / "experiments" / "cartpole"
    assert list(trials.glob("trial1/policies/default/checkpoints/cp-*"))
