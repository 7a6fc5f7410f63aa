"""The same training twice: the same parameters, to the bit."""

from pathlib import Path

import numpy as np
import pytest
from processes import SMALL_DA3C, Training, wait_for
from safetensors.numpy import load_file

pytestmark = pytest.mark.integration

#: Where the training ends the first time, and where after everything was started again.
STEPS, STEPS_AFTER_A_RESTART = 20_000, 23_000


class Run:
    """One of the trainings, in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.training = Training(directory)

    def start(self, last_step: int) -> None:
        """Start all of it, up to ``last_step``."""
        self.training.configure({**SMALL_DA3C, "max_global_step": last_step}, {}, {"seed": 7})
        self._parameter_server = self.training.start_parameter_server()
        self._rlx_server = self.training.start_rlx_server()
        self._environment = self.training.start_environments(1, "--attempts", "1")

    def result(self) -> dict[str, np.ndarray]:
        """Wait for the end, and return what the last checkpoint holds."""
        for process in (self._parameter_server, self._rlx_server, self._environment):
            assert process.wait(120) == 0
        checkpoints = self.training.checkpoints.glob("cp-*.safetensors")
        latest = max(checkpoints, key=lambda path: int(path.name.split("-")[1].split(".")[0]))
        return {"step": np.array(int(latest.name.split("-")[1].split(".")[0])), **load_file(latest)}

    def close(self) -> None:
        self.training.close()


@pytest.fixture(name="runs")
def _runs(tmp_path: Path):
    runs = [Run(tmp_path / name) for name in ("first", "second")]
    try:
        yield runs
    finally:
        for run in runs:
            print(run.training.show())
            run.close()
    for run in runs:
        wait_for(lambda run=run: not run.training.survivors(), "the end of every process", 10)


def test_one_seed_and_one_connection_give_the_same_parameters_also_after_a_restart(runs):
    before = b""
    for last_step in (STEPS, STEPS_AFTER_A_RESTART):
        for run in runs:
            run.start(last_step)
        first, second = (run.result() for run in runs)
        assert first.keys() == second.keys()
        assert last_step <= first["step"] < last_step + SMALL_DA3C["episode_len"]
        for name, tensor in first.items():
            assert tensor.tobytes() == second[name].tobytes(), name
        assert first["parameters"].tobytes() != before  # something was learnt
        before = first["parameters"].tobytes()
