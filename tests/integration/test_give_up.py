"""Servers whose parameter server never comes end after ``--give-up`` seconds, with status 1."""

import pytest
from processes import SMALL_DA3C, SMALL_SAC, Training, free_port
from worker_modes import SHARED

pytestmark = [pytest.mark.integration, SHARED]

SHARING = {**SMALL_SAC, "learners": {"count": 2, "gradients": "asynchronous"}}
#: Stands for an address where nobody listens.
NOWHERE = "NOWHERE"


@pytest.mark.parametrize(
    ("algorithm", "command", "flags", "awaited"),
    [
        (SMALL_DA3C, "relaax-rlx-server", [], "the parameter server"),
        (SMALL_SAC, "relaax-learner", [], "the parameter server"),
        (SHARING, "relaax-learner", ["--replay-servers", NOWHERE], "the parameter server"),
        (SMALL_SAC, "relaax-replay-server", ["--bind", NOWHERE], "the parameter server"),
        (SMALL_DA3C, "relaax-parameter-server", ["--replica-of", NOWHERE], "the primary"),
        (
            SMALL_DA3C,
            "relaax-parameter-server",
            ["--shard", "2/2", "--shards", NOWHERE, NOWHERE],
            "the first shard",
        ),
    ],
    ids=["RLX server", "learner", "learner that shares", "replay server", "replica", "shard"],
)  # fmt: skip
def test_what_never_hears_of_its_parameter_server_gives_up(
    training: Training, algorithm, command: str, flags: list[str], awaited: str
):
    training.configure(algorithm)
    flags = [f"127.0.0.1:{free_port()}" if flag == NOWHERE else flag for flag in flags]
    process = training.start_command(command, "--give-up", "1", *flags)
    assert process.wait() == 1
    assert f"{awaited} could not be used within 1 s of the start (--give-up)" in process.output()
    assert "Traceback" not in process.output()
