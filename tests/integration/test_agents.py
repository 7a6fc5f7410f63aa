"""Environments with several agents, which take turns and leave, on a real RLX server."""

import os
import sys

import numpy as np
import pytest
from processes import REPOSITORY, SMALL_DA3C, Process, Training
from worker_modes import SHARED

from relaax.algorithm_base import NewValues
from relaax.client import AgentReport, Failure, MultiAgentClient
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.parameters import Bridge
from relaax.protocol.binary import ErrorCode

pytestmark = [pytest.mark.integration, SHARED]

PPO = {
    "path": str(REPOSITORY / "algorithms" / "ppo"), "action_size": 2, "state_size": [1],
    "hidden_layers": [], "filter_states": False, "episode_len": 8, "rollouts_per_batch": 4,
    "minibatches": 1, "seed": 1,
}  # fmt: skip

RACE = {"state_size": {"observation": [1]}, "action_mask": "action_mask", "action_size": 2}


def start_races(training: Training, *more: str) -> Process:
    """Play the race of the tests in turns, in two processes with two races each."""
    path = f"PYTHONPATH={REPOSITORY / 'tests'}:{os.environ.get('PYTHONPATH', '')}"
    program = str(REPOSITORY / "environments" / "PettingZoo" / "main")
    return training.start(
        "races",
        [
            "env", path, sys.executable, program, "--rlx-server", training.rlx_server_url,
            "--env", "race_environment", "--count", "4", "--per-connection", "2", *more,
        ],
    )  # fmt: skip


@pytest.mark.parametrize("api", ["aec", "parallel"])
def test_agents_in_turns_or_at_the_same_time_train_until_the_training_is_over(
    training: Training, api: str
):
    """A forbidden move would end the program with an error."""
    agents = [{"index_regex": "left|right"}]
    training.configure(SMALL_DA3C | RACE | {"agents": agents, "max_global_step": 600})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    races = start_races(training, "--api", api, "--env-kwargs", '{"length": 4, "most_moves": 9}')
    assert races.wait() == 0, races.output()
    assert "training is over" in races.output()
    assert "Traceback" not in races.output()
    assert parameter_server.wait() == 0


def test_each_agent_acts_by_the_policy_that_the_configuration_names(
    training: Training, bridge: Bridge
):
    agents = [{"index_regex": "left", "policy": "first"}, {"index_regex": "1", "policy": "second"}]
    training.configure(PPO | {"agents": agents})
    training.start_parameter_server()
    training.start_learner()
    for action, policy in enumerate(("first", "second")):
        bridge.push(NewValues(vector_of_one_action(action), 1), policy)
    training.start_rlx_server()
    with MultiAgentClient(training.rlx_server_url, ("left", "right"), 2, timeout_s=60) as client:
        seen = [(number, name) for number in (0, 1) for name in ("left", "right")]
        actions = [client.init({agent: AgentReport([0.0], starts=True) for agent in seen})]
        actions += [client.send({agent: AgentReport([0.0], 1.0) for agent in seen})]
    for each in actions:
        assert each == {(0, "left"): 0, (0, "right"): 1, (1, "left"): 0, (1, "right"): 1}


def vector_of_one_action(action: int) -> np.ndarray:
    """Parameters of PPO by which one action alone is ever drawn."""
    algorithm = load_algorithm(REPOSITORY / "algorithms" / "ppo")
    keys = {key: value for key, value in PPO.items() if key != "path"}
    manifest = algorithm.Config(keys).network.manifest
    vector = np.zeros(manifest.size, np.float32)
    bias = manifest.unpack(vector)["policy/bias"]
    bias[action] = 1e3
    return vector


def test_an_agent_without_a_policy_is_refused_with_its_name(training: Training):
    training.configure(SMALL_DA3C | RACE | {"agents": [{"index_regex": "left"}]})
    training.start_parameter_server()
    training.start_rlx_server()
    report = AgentReport({"observation": [0.0], "action_mask": [1, 1]}, starts=True)
    client = MultiAgentClient(training.rlx_server_url, ("left", "right"), timeout_s=60)
    unmatched = pytest.raises(Failure, match="matches the agent 'right' with the index 1")
    with client, unmatched as refused:
        client.init({(0, "left"): report})
    assert refused.value.code == ErrorCode.MISMATCH
