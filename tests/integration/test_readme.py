"""The programs that README and docs/your_environment.md show, with a simulator, on real servers."""

import re
import sys

import pytest
from processes import REPOSITORY, SMALL_DA3C, Process, Training

pytestmark = pytest.mark.integration

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

#: The page, the heading above the program, and the client in it.
PROGRAMS = [
    ("README.md", "## Your own environment", "Client"),
    ("docs/your_environment.md", "## The program", "Client"),
    ("docs/your_environment.md", "## Many environments on one connection", "VectorClient"),
]


@pytest.fixture(name="program", params=PROGRAMS, ids=lambda program: f"{program[0]}-{program[2]}")
def _program(request, training: Training):
    """Starts the program of a page."""
    page, heading, client = request.param
    text = (REPOSITORY / page).read_text()
    (section,) = re.findall(rf"^{heading}$(.*?)^#", text + "\n#", re.M | re.S)
    text = re.search(r"```python\n(import.*?)```", section, re.S)[1]
    assert f"client = {client}(" in text
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
