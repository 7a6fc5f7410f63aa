"""Two learners that move one set of parameters, and draw from one replay server."""

import signal
from typing import Any, TypeAlias

import pytest
from processes import SMALL_PPO, SMALL_SAC, Process, Training, free_port, wait_for
from worker_modes import SHARED

from relaax.parameters import Bridge

pytestmark = [pytest.mark.integration, SHARED]

Case: TypeAlias = tuple[dict[str, Any], str]

#: An algorithm, and an environment for it.
SAC = ({**SMALL_SAC, "updates_per_step": 1.0}, "Pendulum-v1")
PPO = (SMALL_PPO, "CartPole-v1")


def start(training: Training, gradients: str, case: Case = SAC, **keys) -> list[Process]:
    """Start all; return the two learners."""
    url = f"127.0.0.1:{free_port()}"
    learners = {"count": 2, "gradients": gradients, "timeout": 1.0}
    algorithm, env = case
    training.configure(
        {**algorithm, "learners": learners, **keys},
        learner={"replay-servers": [url], "checkpoint-interval": 1.0},
    )
    training.start_parameter_server()
    training.start_replay_server(url)
    started = [start_learner(training, number) for number in range(2)]
    training.start_rlx_server()
    training.start_environments(2, env=env, is_paced=True)
    return started


def start_learner(training: Training, number: int) -> Process:
    return training.start_learner("--checkpoint-dir", str(training.directory / f"of {number}"))


def wait_for_updates(bridge: Bridge, more: int = 30) -> None:
    target = bridge.pull().version.number + more
    wait_for(lambda: bridge.pull().version.number > target, "more updates")


@pytest.mark.parametrize(("case", "gradients"), [(SAC, "asynchronous"), (PPO, "synchronous")])
def test_a_learner_that_is_killed_is_missed_and_takes_part_again(
    training: Training, bridge: Bridge, case: Case, gradients: str
):
    first, second = start(training, gradients, case)
    wait_for_updates(bridge)
    second.kill()
    wait_for_updates(bridge)
    again = start_learner(training, 1)
    wait_for_updates(bridge)
    for learner in (first, again):
        learner.signal(signal.SIGTERM)
        assert learner.wait() == 0


@pytest.mark.parametrize("case", [SAC, PPO])
def test_both_end_with_the_training(training: Training, case: Case):
    start(training, "synchronous", case, max_global_step=800)
    assert [process.wait() for process in training.processes] == [0] * 6
