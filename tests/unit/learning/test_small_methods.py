"""The methods in folders of tests/learning: each is small, and is what it is called."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from relaax.algorithm_base import Values, Version
from relaax.assembly.parts import Home
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.rollouts.labels import name_column

FOLDER = Path(__file__).parents[2] / "learning"

pytestmark = pytest.mark.usefixtures("tensorflow")


NAMES = [
    "actor_critic_replay", "asymmetric_critic", "natural_gradient", "population", "recurrent_q"
]  # fmt: skip


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


class Pushed:
    """Keeps the newest values of each policy, as a parameter server does."""

    def __init__(self):
        self.by_name, self.version = {}, 0

    def push(self, update, policy):
        self.version += 1
        self.by_name[policy] = update.vector, self.version
        return Values(Version(self.version), 0, None)


def test_a_population_moves_towards_its_best_candidate_once_each_has_an_episode():
    config = load_algorithm(FOLDER / "population").module.Config(
        {"state_size": [1], "action_size": 2, "candidates": 3, "seed": 1}
    )
    builder = import_module(".builder", type(config).__module__.rpartition(".")[0]).Builder(config)
    learner, pushed = builder.learner(Home(1, np.random.default_rng(0), None)), Pushed()
    learner.connected(pushed)
    first, before = dict(pushed.by_name), learner.parameters()
    best, _ = first["candidate-2"]
    for name, reward in {"candidate-0": 0.0, "candidate-2": 1.0, "candidate-1": 0.0}.items():
        episode = {
            "valid": np.array([[True], [True], [False]]),
            "policy_name": name_column([name] * 3)[:, np.newaxis],
            "policy_version": np.full((3, 1), first[name][1]),
            "reward": np.full((3, 1), reward),
        }
        older = {**episode, "policy_version": np.full((3, 1), -1)}
        assert learner.step({"episodes": older}).updates == 0
        step = learner.step({"episodes": episode})
    assert (step.updates, step.terms["best score"]) == (1, 2.0)
    moved = learner.parameters() - before
    assert moved @ (best - before) > 0
    assert all(version > first[name][1] for name, (_, version) in pushed.by_name.items())


def test_conjugate_gradients_solve_what_is_symmetric_and_positive():
    package = load_algorithm(FOLDER / "natural_gradient").module
    solve = import_module(".method_tf", package.__name__).conjugate_gradient
    random = np.random.default_rng(0)
    root = random.normal(size=(6, 6))
    matrix, right = np.float32(root @ root.T + np.eye(6)), np.float32(random.normal(size=6))
    found = solve(lambda x: np.linalg.multi_dot([matrix, x]), right)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-3, atol=1e-4)
