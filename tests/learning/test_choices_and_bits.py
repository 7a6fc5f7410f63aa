"""Bits, and several choices at once, through real servers, from Gymnasium's spaces and back."""

import pytest
from choices_environment import STEPS
from processes import REPOSITORY, Training
from worker_modes import SHARED

pytestmark = [pytest.mark.learning, SHARED]

SECTION = {
    "path": str(REPOSITORY / "algorithms" / "da3c"), "state_size": [3], "hidden_layers": [32],
    "initial_learning_rate": 1e-2, "rewards_gamma": 0.1, "max_global_step": 200_000, "seed": 1,
    "RMSProp": {"epsilon": 1e-3},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "keys"), [("Bits", {"action_bits": [2, 2]}), ("Nested", {"action_size": [3, 2, 2]})]
)
def test_every_number_of_an_action_is_learnt(training: Training, name, keys):
    """Guessing earns half of the reward at most. The environments refuse what is no action."""
    training.configure({**SECTION, **keys}, {"goal-return": 0.9 * STEPS})
    server = training.start_parameter_server()
    training.start_rlx_server()
    training.start_environments(8, "--per-connection", "4", env=f"choices_environment:{name}-v0")
    assert server.wait(90) == 0
    server.says("has reached its goal")
