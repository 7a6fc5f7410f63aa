"""Named observations and masks from a client to DA3C: what it learns from, and what it may do."""

import numpy as np
import pytest
from processes import REPOSITORY, Training, wait_for
from senses_environment import KEYS, picture
from worker_modes import SHARED

from relaax.client import Client
from relaax.parameters import Bridge

pytestmark = [pytest.mark.integration, SHARED]

STEPS = 12


@pytest.mark.parametrize("protocol", [1, 2])
def test_a_client_of_either_version_sends_an_image_a_number_and_a_mask(
    training: Training, bridge: Bridge, protocol
):
    training.configure(
        {"path": str(REPOSITORY / "algorithms" / "da3c"), **KEYS, "episode_len": 4, "seed": 1}
        | {"network": {"encoders": {"camera": [{"dense": 8}]}}}
    )
    training.start_parameter_server()
    training.start_rlx_server()
    random = np.random.default_rng(1)
    legal = np.array([0, 1, 0])
    with Client(training.rlx_server_url, timeout_s=60, protocol=protocol) as client:
        action = client.init(state_of(random, legal))
        for _ in range(STEPS):
            assert legal[action] == 1
            legal = random.permutation([0, 1, 1])
            action = client.send(1.0, state_of(random, legal))
        client.reset(1.0)
        wait_for(lambda: bridge.get_values().global_t == STEPS, "what is learnt from it")


def state_of(random: np.random.Generator, legal: np.ndarray) -> dict[str, object]:
    """Nested in Python, with a plain number in it."""
    arm = {"speed": float(random.choice([-1, 1])), "legal": legal}
    return {"camera": picture(bool(random.integers(2))), "arm": arm}
