"""The methods in folders of tests/learning: each is small, and is what it is called."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from relaax.algorithm_base import NullMetrics, NullSaver, Version
from relaax.assembly.parts import Home, WorkerParts
from relaax.assembly.placing import in_worker
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.errors import ConfigurationError
from relaax.learning.filters import Filters
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


@pytest.mark.parametrize("key", ["passes", "policy_clip", "RMSProp", "learners", "anneal_from"])
def test_keys_of_gradients_are_refused_where_a_learner_sets_its_values(key):
    config = load_algorithm(FOLDER / "natural_gradient").module.Config
    with pytest.raises(ValueError, match=f"{key}: no such key"):
        config({"state_size": [2], "action_size": 2, key: 1})


def test_several_learners_that_set_their_values_are_refused():
    algorithm = load_algorithm(FOLDER / "recurrent_q")
    config = algorithm.Config({"state_size": [2], "action_size": 2, "learners": {"count": 2}})
    with pytest.raises(ConfigurationError, match="learners: RecurrentQLearning sets the values"):
        algorithm.make_learner(config, 1)


def test_a_learner_that_sets_its_values_is_refused_in_a_worker():
    module = load_algorithm(FOLDER / "natural_gradient").module
    config = module.Config({"state_size": [2], "action_size": 2, "learner": "process"})
    builder = import_module(".builder", module.__name__).Builder(config)
    link = module.ParameterServer(config, NullSaver(), NullMetrics()).bridge()
    with pytest.raises(ConfigurationError, match=r"NaturalGradient does not learn in a worker"):
        in_worker(
            builder, WorkerParts(5), None, None, link, np.random.default_rng(0), False, Filters()
        )


def test_a_population_moves_towards_its_best_candidate_once_each_has_an_episode():
    config = load_algorithm(FOLDER / "population").module.Config(
        {"state_size": [1], "action_size": 2, "candidates": 3, "seed": 1}
    )
    builder = import_module(".builder", type(config).__module__.rpartition(".")[0]).Builder(config)
    learner = builder.learner(Home(1, np.random.default_rng(0), None))
    first = learner.values()
    for number, policy in enumerate(first):
        learner.published(policy, Version(number))
    assert not learner.values()
    for name, reward in {"candidate-0": 0.0, "candidate-2": 1.0, "candidate-1": 0.0}.items():
        episode = {
            "valid": np.array([[True], [True], [False]]),
            "policy_name": name_column([name] * 3)[:, np.newaxis],
            "policy_version": np.full((3, 1), [*first].index(name)),
            "reward": np.full((3, 1), reward),
        }
        (step,) = learner.steps({"episodes": {**episode, "policy_version": np.full((3, 1), -1)}})
        assert step.updates == 0
        (step,) = learner.steps({"episodes": episode})
    assert (step.updates, step.terms["best score"]) == (1, 2.0)
    before, best = first["default"], first["candidate-2"]
    assert (learner.values()["default"] - before) @ (best - before) > 0
    assert learner.values().keys() == first.keys()


def test_conjugate_gradients_solve_what_is_symmetric_and_positive():
    package = load_algorithm(FOLDER / "natural_gradient").module
    solve = import_module(".method_tf", package.__name__).conjugate_gradient
    random = np.random.default_rng(0)
    root = random.normal(size=(6, 6))
    matrix, right = np.float32(root @ root.T + np.eye(6)), np.float32(random.normal(size=6))
    found = solve(lambda x: np.linalg.multi_dot([matrix, x]), right)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-3, atol=1e-4)
