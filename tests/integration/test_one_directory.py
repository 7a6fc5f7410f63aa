"""Two real servers that are given one checkpoint directory are kept apart."""

import pytest
from processes import SMALL_SAC, Training, free_port

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("command", ["relaax-parameter-server", "relaax-learner"])
def test_the_second_server_is_refused_and_names_the_first(training: Training, command: str):
    training.configure(SMALL_SAC)
    owner = training.start_parameter_server()
    directory = training.checkpoints
    if command == "relaax-learner":
        owner, directory = training.start_learner(), training.directory / "learner"
    second = training.start_command(command, "--bind", f"127.0.0.1:{free_port()}")
    assert second.wait() == 2
    assert f"{directory} is in use by {command} (pid {owner.pid} on " in second.output()
    assert owner.is_running()
