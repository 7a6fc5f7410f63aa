"""``relaax-experiment run --on slurm``: a trial on two nodes of a real Slurm cluster."""

import re
import shlex
import subprocess
from collections.abc import Iterator

import pytest
from cartpole_processes import EXAMPLE, PROCESSES, programs_of
from networks import NEEDS_NAMESPACES
from processes import COMMANDS, Training
from slurm import NEEDS_SLURM, Slurm, cluster

pytestmark = [pytest.mark.integration, NEEDS_NAMESPACES, NEEDS_SLURM]

PROGRAM = str(COMMANDS / "relaax-experiment")
DEADLINE_S = 240.0
NODES = ["--nodes=2", "--ntasks=2", "--exclusive"]


@pytest.fixture(name="slurm")
def _slurm(training: Training) -> Iterator[Slurm]:
    with cluster(training, 2) as slurm:
        yield slurm


def command(training: Training, experiment: str, steps: int) -> list[str]:
    """Return the command that runs an experiment of the example, for fewer steps."""
    words = [PROGRAM, "show", str(EXAMPLE), "-e", experiment]
    shown = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    twin, access = training.directory / "twin.yaml", training.directory / "access.yaml"
    twin.write_text(shown.stdout.replace("60000", str(steps)))
    access.write_text("--insecure: true\n")
    return [PROGRAM, "run", str(twin), "--on", "slurm", "--access", str(access)]


def steps(slurm: Slurm, programs: dict[str, str]) -> dict[str, tuple[str, int, int]]:
    """Return the program, the cores and the MiB of each process, as Slurm has them."""
    shown = slurm.run("steps", ["scontrol", "show", "steps"])
    assert shown.wait() == 0
    found = {}
    for step in shown.output().split("StepId=")[1:]:
        name = re.search(r"Name=(\S+)", step)[1]
        asked = re.search(r"TRES=cpu=(\d+),mem=(\d+)([MG])", step)
        if name.partition(".")[0] in programs and asked is not None:
            mib = int(asked[2]) * {"M": 1, "G": 1024}[asked[3]]
            found[name] = (programs[name.partition(".")[0]], int(asked[1]), mib)
    return found


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
    job = slurm.run("salloc", ["salloc", *NODES, *command(training, "cartpole-remote", 10**7)])
    job.says("training: step [1-9]")
    names = ["-e", "cartpole-remote"]
    status = slurm.run("status", [PROGRAM, "status", *names])
    assert status.wait() == 0, status.output()
    rows = [line for line in status.output().splitlines() if " runs " in line]
    assert {row.split()[0] for row in rows} >= set(PROCESSES), status.output()
    trial = training.directory / "training" / "experiments" / "cartpole-remote" / "trial1"
    assert steps(slurm, programs_of(trial)) == PROCESSES
    stop = slurm.run("stop", [PROGRAM, "stop", *names])
    assert stop.wait() == 0, stop.output()
    assert job.wait() == 143
    assert "stopped by a signal: global step" in job.output()
    assert list(trial.glob("policies/default/checkpoints/cp-*"))
