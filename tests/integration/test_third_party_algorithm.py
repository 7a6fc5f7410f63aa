"""An algorithm from outside the repository, written against the documented names, trains.

It is the one that docs/your_algorithm.md shows, taken from the page.
"""

import pytest
from processes import Training
from your_algorithm_page import whole_algorithm

from relaax.parameters import Bridge

pytestmark = pytest.mark.integration

#: Far from what chance reaches: a random policy lasts about 22 steps.
GOAL = 150


def test_random_search_learns_cartpole_and_resumes(training: Training, bridge: Bridge):
    directory = training.directory / "elsewhere" / "my_algorithm"
    directory.mkdir(parents=True)
    for name, text in whole_algorithm().items():
        (directory / name).write_text(text)
    training.configure(
        {"path": "elsewhere/my_algorithm", "state_size": 4, "action_size": 2},
        {"goal-return": GOAL, "goal-episodes": 20},
    )
    parameter_server = training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    environments = training.start_environments(2, "--attempts", "2")
    assert parameter_server.wait() == 0
    assert "the mean return has reached its goal" in parameter_server.output()
    assert rlx_server.wait() == 0
    assert environments.wait() == 0
    assert "Traceback" not in rlx_server.output()

    steps = parameter_server.says(r"global step ([\d,]+);")[1].replace(",", "")
    again = training.start_parameter_server()
    again.says(f"global step is {steps}\n")
    best = bridge.get_values().vector
    assert best is not None
    assert best[0] > GOAL
