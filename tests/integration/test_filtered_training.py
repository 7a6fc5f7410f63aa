"""Filtered states through real servers: all workers filter alike, and so does a restart."""

import signal

import numpy as np
import pytest
from checkpoints import saver
from learning_parts import Driven, Stored, report
from processes import REPOSITORY, Process, Training, wait_for
from worker_modes import SEVERAL, SEVERAL_WORKERS

from relaax.client import VectorClient
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.filters.statistics import length_of, unpacked
from relaax.parameters import Bridge
from relaax.steps import START

pytestmark = [pytest.mark.integration, SEVERAL]

ENVIRONMENTS, STEPS = 4, 20

#: A policy that is nearly certain and hardly learns: what it chooses says what it has seen.
SECTION = {
    "path": str(REPOSITORY / "algorithms" / "da3c_cont"), "action_size": 1, "state_size": [2],
    "hidden_layers": [16], "lstm": False, "sigma": "free", "initial_sigma": 1e-4, "episode_len": 5,
    "initial_learning_rate": 1e-8, "filter_rewards": True, "seed": 1,
}  # fmt: skip

#: Of the states, then of the rewards: how many there were, their means, their deviations.
STATES, REWARDS = length_of(2), length_of(1)
STATISTICS = STATES + REWARDS

_RANDOM = np.random.default_rng(0)


def states_of(environments: int) -> np.ndarray:
    return _RANDOM.normal((100, -3), (5, 0.1), (environments, 2)).astype(np.float32)


def play(client: VectorClient) -> tuple[np.ndarray, np.ndarray]:
    """Report states until rollouts are full; return all states and all rewards."""
    states = [states_of(ENVIRONMENTS) for _ in range(STEPS + 1)]
    rewards = _RANDOM.normal(3, 2, (STEPS, ENVIRONMENTS))
    client.init(states[0])
    for state, reward in zip(states[1:], rewards, strict=True):
        client.send(reward, state)
    return np.concatenate(states), rewards.ravel()


def statistics(bridge: Bridge) -> np.ndarray:
    return bridge.get_values().vector[-STATISTICS:]


def stop(*processes: Process) -> None:
    for process in processes:
        process.signal(signal.SIGTERM)
    for process in processes:
        process.wait()


def chosen_from_the_checkpoint(training: Training, states: np.ndarray) -> np.ndarray:
    """What an agent in this process chooses by the latest checkpoint."""
    continuous = load_algorithm(REPOSITORY / "algorithms" / "da3c_cont").module
    section = {key: value for key, value in SECTION.items() if key != "path"}
    config = continuous.Config({**section, "learn": False})
    server = continuous.ParameterServer(config, saver(training.checkpoints), Stored())
    server.restore_latest_checkpoint()
    agent = Driven(continuous.make_batch_agent(config, server.bridge(), 0, False))
    count = len(states)
    return agent.act(report(agent.open(count), [START] * count, [0.0] * count, states))


def test_all_workers_and_a_restart_filter_by_every_state_that_was_reported(
    training: Training, bridge: Bridge
):
    training.configure(SECTION)
    servers = training.start_parameter_server(), training.start_rlx_server()
    clients = [
        VectorClient(training.rlx_server_url, ENVIRONMENTS, timeout_s=60)
        for _ in range(SEVERAL_WORKERS)
    ]
    states, rewards = (np.concatenate(each) for each in zip(*map(play, clients), strict=True))
    wait_for(lambda: statistics(bridge)[0] == len(states), "statistics of all states")
    found = statistics(bridge)
    for part, seen in ((found[:STATES], states), (found[STATES:], rewards[:, np.newaxis])):
        expected = [len(seen), *seen.mean(axis=0), *seen.std(axis=0)]
        np.testing.assert_allclose(unpacked(part), expected, rtol=1e-5)
    for client in clients:
        client.disconnect()
    stop(*reversed(servers))

    saved = saver(training.checkpoints).restore_latest().tensors["parameters"]
    np.testing.assert_array_equal(saved[-STATISTICS:], found)
    training.configure({**SECTION, "learn": False})
    training.start_parameter_server()
    training.start_rlx_server()
    np.testing.assert_array_equal(statistics(bridge), found)
    probe = states_of(ENVIRONMENTS)
    expected = chosen_from_the_checkpoint(training, probe)
    assert np.ptp(expected) > 0.05
    clients = [
        VectorClient(training.rlx_server_url, ENVIRONMENTS, timeout_s=60)
        for _ in range(SEVERAL_WORKERS)
    ]
    for client in clients:
        np.testing.assert_allclose(client.init(probe), expected, atol=1e-3)
    for client in clients:
        client.disconnect()
