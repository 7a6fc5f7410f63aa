"""A second algorithm, built from the library in a folder of its own, trains continuous actions."""

from pathlib import Path

import numpy as np
import pytest
from points import GOAL, STANDING_STILL, STEPS, Points
from processes import Training

from relaax.client import VectorClient

pytestmark = pytest.mark.learning

ALGORITHM = Path(__file__).parent / "reinforce_gaussian"

#: Most of one training; it reaches the goal in a tenth of them.
EPISODES = 1000


def test_points_learn_to_reach_their_targets(
    training: Training, capsys: pytest.CaptureFixture[str]
):
    training.configure(
        {"path": str(ALGORITHM), "state_size": 2, "action_size": 2, "episode_len": STEPS}
    )
    training.start_parameter_server()
    training.start_rlx_server()
    points = Points(16)
    with VectorClient(training.rlx_server_url, environments=16) as client:
        actions = client.init(points.start())
        while len(points.returns) < EPISODES and np.mean(points.returns[-20:] or -99) < GOAL:
            rewards, states, is_end = points.step(actions)
            actions = client.send(rewards, states, terminated=is_end)
    assert actions.shape == (16, 2)
    assert np.mean(points.returns[:3]) < STANDING_STILL
    assert np.mean(points.returns[-20:]) > GOAL
    with capsys.disabled():
        print(f"\nREINFORCE, a mean return of {GOAL:g} took {len(points.returns)} episodes")
