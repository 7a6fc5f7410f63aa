"""The programs that the README shows, with a simulator, against real servers."""

import re
import sys

import pytest
from processes import REPOSITORY, SMALL_DA3C, Process, Training

pytestmark = pytest.mark.integration

README = (REPOSITORY / "README.md").read_text()

#: What the programs suppose: episodes of ten steps, with states of four numbers.
SIMULATORS = """
class Simulator:
    def restart(self):
        self.steps = 0
        return [0.1] * 4

    def apply(self, action):
        assert action in (0, 1)
        self.steps += 1
        return 1.0, [0.1 * self.steps] * 4, self.steps == 10


my_simulator = Simulator()
simulators = [Simulator() for _ in range(16)]
apply = Simulator.apply
"""

PROGRAMS = {
    "Client": "## Your own environment",
    "VectorClient": "### Many environments on one connection",
}


@pytest.fixture(name="program", params=PROGRAMS)
def _program(request, training: Training):
    """Starts the README's program with this client."""
    (section,) = re.findall(rf"^{PROGRAMS[request.param]}$(.*?)^#", README, re.M | re.S)
    text = re.search(r"```python\n(import.*?)```", section, re.S)[1]
    assert f"client = {request.param}(" in text
    file = training.directory / "my_simulator.py"
    file.write_text(SIMULATORS + text.replace("localhost:7001", training.rlx_server_url))

    def start() -> Process:
        return training.start("program", [sys.executable, str(file)])

    return start


def test_the_program_plays_until_the_training_is_over(training: Training, program):
    training.configure({**SMALL_DA3C, "max_global_step": 500})
    training.start_parameter_server()
    training.start_rlx_server()
    playing = program()
    assert [process.wait() for process in training.processes] == [0, 0, 0]
    assert playing.output().strip().endswith("the training is over")


def test_the_program_fails_where_the_server_refuses_what_it_sends(training: Training, program):
    training.configure({**SMALL_DA3C, "state_size": [3]})
    training.start_parameter_server()
    training.start_rlx_server()
    playing = program()
    assert playing.wait() == 1
    (line,) = playing.output().splitlines()
    assert re.search(r"the observations are .*\[4\].* asks for .*\[3\]", line)
