"""The methods in folders of tests/learning: each is small, and is what it is called."""

from pathlib import Path

import numpy as np
import pytest

from relaax.configuration.algorithm_loader import load_algorithm

FOLDER = Path(__file__).parents[2] / "learning"

pytestmark = pytest.mark.usefixtures("tensorflow")


NAMES = ["actor_critic_replay", "asymmetric_critic", "natural_gradient", "recurrent_q"]


@pytest.mark.parametrize("name", NAMES)
def test_its_folder_is_small(name):
    lines = sum(len(path.read_text().splitlines()) for path in (FOLDER / name).glob("*.py"))
    assert lines < 150


def test_a_policy_does_not_depend_on_the_observation_that_the_critic_alone_sees():
    from relaax.learning.networks.parameters_tf import outputs_of

    section = {"state_size": {"seen": [2], "hidden": [1]}, "action_size": 3, "hidden": "hidden"}
    network = load_algorithm(FOLDER / "asymmetric_critic").module.Config(section).network
    random = np.random.default_rng(0)
    vector = random.normal(size=network.manifest.size).astype(np.float32)
    seen, hidden = random.normal(size=(1, 5, 2)), random.normal(size=(2, 5, 1))
    one, other = (
        outputs_of(network, vector, {"seen": np.float32(seen[0]), "hidden": np.float32(part)})
        for part in hidden
    )
    np.testing.assert_array_equal(one["policy"], other["policy"])
    assert (one["value"] != other["value"]).numpy().all()


def test_conjugate_gradients_solve_what_is_symmetric_and_positive():
    from importlib import import_module

    package = load_algorithm(FOLDER / "natural_gradient").module
    solve = import_module(".method_tf", package.__name__).conjugate_gradient
    random = np.random.default_rng(0)
    root = random.normal(size=(6, 6))
    matrix, right = np.float32(root @ root.T + np.eye(6)), np.float32(random.normal(size=6))
    found = solve(lambda x: np.linalg.multi_dot([matrix, x]), right)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-3, atol=1e-4)
