"""Two learners that move one set of parameters, and draw from one replay server."""

import signal

import pytest
from processes import SMALL_SAC, Process, Training, free_port, wait_for
from worker_modes import SHARED

from relaax.parameters import Bridge

pytestmark = [pytest.mark.integration, SHARED]


def start(training: Training, gradients: str, **algorithm) -> list[Process]:
    """Start all; return the two learners."""
    url = f"127.0.0.1:{free_port()}"
    learners = {"count": 2, "gradients": gradients, "timeout": 1.0}
    training.configure(
        {**SMALL_SAC, "learners": learners, "updates_per_step": 1.0, **algorithm},
        learner={"replay-servers": [url], "checkpoint-interval": 1.0},
    )
    training.start_parameter_server()
    training.start_replay_server(url)
    started = [start_learner(training, number) for number in range(2)]
    training.start_rlx_server()
    training.start_environments(2, env="Pendulum-v1", is_paced=True)
    return started


def start_learner(training: Training, number: int) -> Process:
    return training.start_learner("--checkpoint-dir", str(training.directory / f"of {number}"))


def wait_for_updates(bridge: Bridge, more: int = 30) -> None:
    target = bridge.get().version.number + more
    wait_for(lambda: bridge.get().version.number > target, "more updates")


@pytest.mark.parametrize("gradients", ["synchronous", "asynchronous"])
def test_a_learner_that_is_killed_is_missed_and_takes_part_again(
    training: Training, bridge: Bridge, gradients: str
):
    first, second = start(training, gradients)
    wait_for_updates(bridge)
    second.kill()
    wait_for_updates(bridge)
    again = start_learner(training, 1)
    wait_for_updates(bridge)
    for learner in (first, again):
        learner.signal(signal.SIGTERM)
        assert learner.wait() == 0


def test_both_end_with_the_training(training: Training):
    start(training, "synchronous", max_global_step=1500)
    assert [process.wait() for process in training.processes] == [0] * 6
