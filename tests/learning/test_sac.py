"""SAC trains with its shipped configuration: workers deliver steps, a learner publishes."""

import pytest
from processes import REPOSITORY, Training

from relaax.server.common.configuration.yaml_reader import read_yaml

pytestmark = [pytest.mark.learning, pytest.mark.timeout(600)]

#: Ten episodes in a row; random actions have about -1,200, and a good policy -150.
GOAL, EPISODES = -300, 10


@pytest.mark.parametrize("training", [1], indirect=True)
def test_sac_learns_to_swing_the_pendulum_up(
    training: Training, capsys: pytest.CaptureFixture[str]
):
    shipped = read_yaml(REPOSITORY / "config" / "sac_pendulum.yaml")["algorithm"]
    algorithm = {**shipped, "path": str(REPOSITORY / "algorithms" / "sac")}
    del algorithm["name"]
    training.configure(algorithm, {"goal-return": GOAL, "goal-episodes": EPISODES})
    parameter_server = training.start_parameter_server()
    training.start_learner()
    training.start_rlx_server()
    training.start_environments(4, "--attempts", "3", env="Pendulum-v1")
    assert [process.wait(400) for process in training.processes] == [0, 0, 0, 0]
    steps = parameter_server.says(r"has reached its goal: global step ([\d,]+);")[1]
    with capsys.disabled():
        print(f"\nPendulum-v1, SAC: a mean return of {GOAL:g} took {steps} steps")
