"""A training goes on when one of its environments fails: it is made again."""

import json

import pytest
from processes import SMALL_DA3C, Training

pytestmark = pytest.mark.integration

FAULTY = "faulty_environment:FaultyCartPole-v1"


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("raises", "environment 0 (FaultyCartPole-v1) failed (OSError: the game is gone)"),
        ("hangs", "environment 0 (FaultyCartPole-v1) failed (EnvironmentHangs: it has not"),
    ],
)
def test_an_environment_that_fails_is_made_again_and_the_training_ends_well(
    training: Training, tmp_path, how, why
):
    training.configure({**SMALL_DA3C, "max_global_step": 600})
    parameter_server = training.start_parameter_server()
    training.start_rlx_server()
    kwargs = json.dumps({"how": how, "once": str(tmp_path / "once")})
    environments = training.start_environments(
        3, "--per-connection", "3", "--env-kwargs", kwargs,
        "--environment-timeout", "1", env=FAULTY,
    )  # fmt: skip
    assert parameter_server.wait() == 0
    assert environments.wait() == 0
    said = environments.output().replace("faulty_environment:", "")
    assert why in said
    assert said.count("its episode is given up, and it is made again in 0.5 s") == 1
