"""The same training twice: the same parameters, to the bit."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import REPOSITORY, SMALL_DA3C, Training, wait_for
from safetensors.numpy import load_file

pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Case:
    """An algorithm, an environment for it, and where the training ends."""

    algorithm: dict[str, Any]
    environment: str
    #: The first time, and after everything was started again.
    ends: tuple[int, int]
    #: Of the RLX server, and how many environments share the connection.
    workers: str | int = "connection"
    environments: int = 1
    #: Of an update, at most.
    rollouts: int = 1


DISCRETE = Case(SMALL_DA3C, "CartPole-v1", (1_000, 1_300))

#: With filters, an LSTM layer and a sigma for each state, as by default.
CONTINUOUS = Case(
    {
        "path": str(REPOSITORY / "algorithms" / "da3c_cont"),
        "action_size": 1,
        "action_low": -2,
        "action_high": 2,
        "state_size": [3],
        "filter_rewards": True,
        "episode_len": 16,
        "passes": 2,
        "policy_clip": 0.2,
        "seed": 1,
        "Adam": {},
    },
    "Pendulum-v1",
    (600, 800),
)

#: It learns whenever rollouts are full, and acts on after that.
SHARED = Case(
    {**SMALL_DA3C, "wait_for_learning": "always", "least_rollouts_per_update": 4, "minibatches": 2},
    "CartPole-v1",
    (1_000, 1_300),
    workers=1,
    environments=4,
    rollouts=12,  # three wait, four become full, and as many where episodes are cut off
)


class Run:
    """One of the trainings, in a directory of its own."""

    def __init__(self, directory: Path, case: Case) -> None:
        directory.mkdir()
        self._case = case
        self.training = Training(directory, case.workers)

    def start(self, first_step: int, last_step: int) -> None:
        """Start all of it, from ``first_step`` to ``last_step``, with a schedule of that length."""
        steps = {"anneal_from": first_step, "max_global_step": last_step}
        algorithm = {**self._case.algorithm, **steps}
        self.training.configure(algorithm, {}, {"seed": 7})
        self._parameter_server = self.training.start_parameter_server()
        self._rlx_server = self.training.start_rlx_server()
        count = self._case.environments
        self._environment = self.training.start_environments(
            count,
            "--per-connection",
            str(count),
            "--attempts",
            "1",
            "--env",
            self._case.environment,
        )

    def result(self) -> dict[str, np.ndarray]:
        """Wait for the end, and return what the last checkpoint holds."""
        for process in (self._parameter_server, self._rlx_server, self._environment):
            assert process.wait(120) == 0
        checkpoints = self.training.checkpoints.glob("cp-*.safetensors")
        latest = max(checkpoints, key=lambda path: int(path.name.split("-")[1].split(".")[0]))
        return {"step": np.array(int(latest.name.split("-")[1].split(".")[0])), **load_file(latest)}

    def close(self) -> None:
        self.training.close()


@pytest.fixture(
    name="case", params=[DISCRETE, CONTINUOUS, SHARED], ids=["da3c", "da3c_cont", "shared worker"]
)
def _case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture(name="runs")
def _runs(tmp_path: Path, case: Case):
    runs = [Run(tmp_path / name, case) for name in ("first", "second")]
    try:
        yield runs
    finally:
        for run in runs:
            print(run.training.show())
            run.close()
    for run in runs:
        wait_for(lambda run=run: not run.training.survivors(), "the end of every process", 10)


def test_one_seed_and_one_connection_give_the_same_parameters_also_after_a_restart(runs, case):
    before = b""
    for first_step, last_step in pairwise((0, *case.ends)):
        for run in runs:
            run.start(first_step, last_step)
        first, second = (run.result() for run in runs)
        assert first.keys() == second.keys()
        assert 0 <= first["step"] - last_step < case.rollouts * case.algorithm["episode_len"]
        for name, tensor in first.items():
            assert tensor.tobytes() == second[name].tobytes(), name
        assert first["parameters"].tobytes() != before  # something was learnt
        before = first["parameters"].tobytes()
