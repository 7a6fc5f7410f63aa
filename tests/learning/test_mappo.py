"""MAPPO learns to let two agents cover two landmarks, with the shipped keys."""

import sys

import pytest
from processes import REPOSITORY, Training
from shipped import say_steps, shipped
from worker_modes import SHARED

pytestmark = [pytest.mark.learning, pytest.mark.timeout(400)]

PROGRAM = REPOSITORY / "environments" / "PettingZoo" / "main"

#: The mean return of each agent; that of actions at random is -24, and -14 is soon reached.
GOAL = -16.0


@SHARED
def test_two_agents_learn_to_cover_two_landmarks(
    training: Training, capsys: pytest.CaptureFixture[str]
):
    """A number less of agents, and of landmarks, than in the shipped configuration."""
    algorithm = shipped("mappo_simple_spread.yaml")
    algorithm |= {"state_size": [12], "team_size": 2, "rollouts_per_batch": 32}
    training.configure(algorithm, {"goal-return": GOAL})
    parameter_server = training.start_parameter_server()
    learner = training.start_learner()
    training.start_rlx_server()
    environments = training.start(
        "environments",
        [
            sys.executable, str(PROGRAM), "--rlx-server", training.rlx_server_url,
            "--env", "mpe2.simple_spread_v3", "--env-kwargs", '{"N": 2}',
            "--count", "16", "--per-connection", "16", "--seed", "1", "--attempts", "3",
        ],
    )  # fmt: skip
    processes = (parameter_server, learner, environments)
    assert [process.wait(300) for process in processes] == [0, 0, 0]
    say_steps(capsys, parameter_server, "simple_spread of two agents, mappo", GOAL)
