"""Workers and a learner that know a replica of the parameter server alone."""

import pytest
from processes import REPOSITORY, Training, free_port, wait_for
from worker_modes import SHARED

from relaax.parameters import Bridge

pytestmark = [pytest.mark.integration, SHARED]

SMALL_DQN = {
    "path": str(REPOSITORY / "algorithms" / "dqn"), "state_size": [4], "action_size": 2,
    "hidden_layers": [8], "batch_size": 16, "learning_starts": 20, "updates_per_step": 0.25,
    "replay_size": 10_000, "seed": 1,
}  # fmt: skip


def start(training: Training, algorithm, **parameter_server):
    """Start all; return the primary and the replica."""
    primary = training.parameter_server_url
    training.parameter_server_url = replica_url = f"127.0.0.1:{free_port()}"
    training.configure(algorithm, {"bind": primary, **parameter_server})
    server = training.start_parameter_server()
    replica = training.start_command(
        "relaax-parameter-server", "--bind", replica_url, "--replica-of", primary
    )
    replica.says("a replica of ")
    training.start_learner()
    training.start_rlx_server()
    training.start_environments(2, "--attempts", "2", is_paced=True)
    return server, replica


def test_a_training_through_a_replica_ends_as_any_other(training: Training):
    start(training, {**SMALL_DQN, "max_global_step": 1500})
    assert [process.wait() for process in training.processes] == [0] * 5


def test_values_are_served_while_the_primary_is_away_and_followed_again(training: Training):
    server, _ = start(training, SMALL_DQN, **{"checkpoint-interval": 1.0})
    bridge = Bridge(training.parameter_server_url)
    wait_for(lambda: bridge.pull().info, "a publication")
    wait_for(lambda: list(training.checkpoints.glob("cp-*.json")), "a checkpoint")
    server.kill()
    assert bridge.pull().vector is not None
    before = bridge.pull().info.iteration
    training.start_parameter_server()
    wait_for(lambda: bridge.pull().info.iteration > before, "a newer publication")
    bridge.close()


def test_a_replica_ends_where_its_primary_does_not_come_back(training: Training):
    primary = training.parameter_server_url
    server = training.start_parameter_server()
    flags = ("--bind", f"127.0.0.1:{free_port()}", "--replica-of", primary, "--give-up", "1")
    replica = training.start_command("relaax-parameter-server", *flags)
    replica.says("a replica of ")
    server.kill()
    assert replica.wait() == 1
    replica.says(r"the primary was away for 1 s \(--give-up\)")
