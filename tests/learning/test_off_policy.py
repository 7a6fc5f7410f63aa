"""SAC, TD3 and DQN train with their shipped configurations: workers deliver, a learner learns."""

import json
from typing import NamedTuple

import pytest
from processes import Training
from shipped import say_steps, shipped
from worker_modes import SHARED

pytestmark = [pytest.mark.learning, pytest.mark.timeout(600)]

#: A mean of so many episodes in a row.
EPISODES = 10


#: Smaller than what ships: an update is ten times as fast, and these environments ask for no more.
SMALL = {"hidden_layers": [64, 64], "batch_size": 64}


#: Takes torques in other units than Gymnasium's, which it is made of.
PENDULUM = "scaled_pendulum:ScaledPendulum-v1"


class Case(NamedTuple):
    """A configuration, its environment, and the mean return of a policy that has learnt."""

    config: str
    env: str
    goal: float
    #: What stands for the torques of the pendulum, -2 and 2: the same is learnt in all units.
    bounds: tuple[float, float] | None = None
    #: Whether its states have other offsets and units, and are filtered.
    far: bool = False


#: Random actions have about -1,200 on the pendulum and 20 on the pole; good policies -150 and 500.
CASES = {
    "SAC": Case("sac_pendulum.yaml", PENDULUM, -400, (-0.01, 0.01)),
    "TD3": Case("td3_pendulum.yaml", PENDULUM, -400, (3, 7), far=True),
    "DQN": Case("dqn_cartpole.yaml", "CartPole-v1", 150),
}


@SHARED
@pytest.mark.parametrize("name", CASES)
def test_it_learns_from_few_steps(
    training: Training, name: str, capsys: pytest.CaptureFixture[str]
):
    case = CASES[name]
    algorithm = {**shipped(case.config), **SMALL}
    arguments: list[str] = []
    if case.bounds is not None:
        low, high = case.bounds
        algorithm |= {"action_low": low, "action_high": high, "filter_states": case.far}
        arguments = ["--env-kwargs", json.dumps({"low": low, "high": high, "far": case.far})]
    training.configure(algorithm, {"goal-return": case.goal, "goal-episodes": EPISODES})
    parameter_server = training.start_parameter_server()
    training.start_learner()
    training.start_rlx_server()
    training.start_environments(4, "--attempts", "3", *arguments, env=case.env)
    assert [process.wait(400) for process in training.processes] == [0, 0, 0, 0]
    say_steps(capsys, parameter_server, f"{case.env}, {name}", case.goal)
