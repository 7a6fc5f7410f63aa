"""``relaax-experiment run --on ray``: a trial on a real cluster of three raylets."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import ray
from cartpole_processes import EXAMPLE, PROCESSES, programs_of
from processes import COMMANDS, MARK, Process, Training, wait_for
from ray.cluster_utils import Cluster
from ray.util import placement_group_table
from small_population import RATES, tagged_versions, write_small_population

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

DEADLINE_S = 240.0

#: Three of them have room for all processes, and two have not.
MACHINE = {"num_cpus": 4, "memory": 4 * 2**30}


@dataclass
class Trial:
    """A trial in a directory of its own, and a cluster."""

    training: Training
    cluster: Cluster
    #: One of three machines.
    machine: Any

    @property
    def twin(self) -> Path:
        """The experiment as YAML."""
        return self.training.directory / "twin.yaml"

    def start(self, experiment: str, steps: int) -> Process:
        """Run an experiment of the example, for fewer steps."""
        shown = self.command("show", str(EXAMPLE), "-e", experiment).stdout
        self.twin.write_text(shown.replace("60000", str(steps)))
        return self.run()

    def run(self) -> Process:
        """Run the experiment."""
        access = self.training.directory / "access.yaml"
        access.write_text("--insecure: true\n")
        words = ["--on", f"ray={self.cluster.address}", "--access", str(access)]
        command = [str(COMMANDS / "relaax-experiment"), "run", str(self.twin), *words]
        return self.training.start("run", command)

    def started(self) -> dict[str, tuple[str, float, float]]:
        """Return the program, the cores and the MiB of each process, as the cluster has them."""
        trial = self.training.directory / "training/experiments/cartpole-remote/trial1"
        programs = programs_of(trial)
        # Ray sets PYTHONBREAKPOINT for good, and later tests' programs would start with it.
        with patch.dict(os.environ):
            ray.init(address=self.cluster.address, log_to_driver=False, logging_level="ERROR")
            try:
                (group,) = placement_group_table().values()
            finally:
                ray.shutdown()
        names = list(PROCESSES)
        found = {}
        for place, bundle in group["bundles"].items():
            program = programs[names[place].partition(".")[0]]
            found[names[place]] = (program, bundle["CPU"], bundle["memory"] / 2**20)
        return found

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run relaax-experiment in the directory of the trial to its end."""
        return subprocess.run(
            [COMMANDS / "relaax-experiment", *words],
            cwd=self.training.directory, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip


@pytest.fixture(name="trial")
def _trial(training: Training, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    monkeypatch.setenv(MARK, str(training.directory))  # so that what is left of a cluster is found
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(initialize_head=True, head_node_args={**MACHINE, "include_dashboard": False})
    try:
        machine, _ = (cluster.add_node(**MACHINE) for _ in range(2))
        cluster.wait_for_nodes()
        yield Trial(training, cluster, machine)
    finally:
        training.close()
        cluster.shutdown()
    wait_for(lambda: not training.survivors(), "the end of what was saving")


def test_a_trial_trains_to_its_end_on_three_machines(trial: Trial):
    run = trial.start("cartpole", 1500)
    assert run.wait(DEADLINE_S) == 0, run.output()
    said = run.output()
    assert "the required number of steps is done" in said
    started = re.findall(r"([\w.-]+) started \(pid=\d+ at \d", said)
    actors = [f"actors0.{number}" for number in range(1, 5)]
    assert sorted(started) == sorted(["default-ps", "default-trainer0", *actors])
    assert "Traceback" not in said
    status = trial.command("status", "-e", "cartpole")
    assert status.returncode == 3, status.stderr
    assert re.search(r"default-ps +ended with status 0 +\d+ at \d", status.stdout)


def test_a_trial_goes_on_though_a_machine_dies_and_is_stopped_by_another_shell(trial: Trial):
    """Policy workers are found by their names, wherever they and the parameter server are."""
    run = trial.start("cartpole-remote", 10**7)
    run.says("training: step [1-9]", DEADLINE_S)
    names = ("-e", "cartpole-remote")
    shown = trial.command("status", *names)
    assert shown.returncode == 0, shown.stderr
    rows = [line for line in shown.stdout.splitlines() if " at " in line]
    assert {row.split()[0] for row in rows} == set(PROCESSES)
    assert all(" runs " in row for row in rows), shown.stdout
    assert trial.started() == PROCESSES
    trial.cluster.remove_node(trial.machine, allow_graceful=False)  # its raylet gets SIGKILL
    gone = run.says(
        r"((?:default|actors|policy)\S+) .*its machine, \S+, .*: it starts again", DEADLINE_S
    )[1]
    trial.cluster.add_node(**MACHINE)  # there was no room before
    run.says(rf"(?s)it starts again.*{re.escape(gone)} started", DEADLINE_S)
    run.says(rf"(?s)it starts again.*{re.escape(gone)} started.*training: step [1-9]", DEADLINE_S)
    stopped = trial.command("stop", *names)
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    assert run.wait(DEADLINE_S) == 143
    assert re.search(r"default-ps +ended with status 0", stopped.stdout)
    said = trial.command("logs", *names, "default-ps").stdout
    assert "stopped by a signal: global step" in said


def test_a_population_goes_on_though_a_machine_dies(trial: Trial):
    write_small_population(trial.twin)
    run = trial.run()
    run.says("population0 .* has the parameters of", DEADLINE_S)
    folder = trial.training.directory / "training" / "experiments" / "pbt" / "trial1"
    tagged = {policy: tagged_versions(folder, policy) for policy in RATES}
    trial.cluster.remove_node(trial.machine, allow_graceful=False)
    run.says(r"its machine, \S+, .*: it starts again", DEADLINE_S)
    trial.cluster.add_node(**MACHINE)
    run.says(r"(?s)it starts again.* started.*population0 [^\n]* has the parameters of", DEADLINE_S)
    assert trial.command("stop", "-e", "pbt").returncode == 0
    assert run.wait(DEADLINE_S) == 143
    for policy, tags in tagged.items():
        assert tags.items() <= tagged_versions(folder, policy).items()
    assert all(tagged.values())
