"""Every bundled algorithm can evaluate: by its mode, without noise of any kind, or with samples."""

from contextlib import closing

import numpy as np
import pytest
from learning_parts import Driven, Kept
from processes import REPOSITORY
from trained import DRAW_NOTHING

from relaax.algorithm_base import EvaluatedPolicy, Evaluation, NullMetrics, NullSaver
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.configuration.named_files import bundled_algorithms
from relaax.steps import START, Steps

COUNT = 64
STATES = np.zeros((COUNT, 3), np.float32)

DISCRETE = {"state_size": [3], "action_size": 2, "hidden_layers": [8], "seed": 1}
CONTINUOUS = {**DISCRETE, "action_size": 1, "action_low": -2, "action_high": 2}

#: By algorithm: its section.
SECTIONS = {
    "acer": {**DISCRETE, "episode_len": 5},
    "cem": DISCRETE,
    "da3c": {**DISCRETE, "episode_len": 5},
    "da3c_cont": {**DISCRETE, "action_size": 1, "episode_len": 5, "lstm": False},
    "ddpg": CONTINUOUS,
    "dqn": {**DISCRETE, "exploration": {"start": 1.0, "end": 1.0}},
    "es": {**CONTINUOUS, "continuous": True},
    "impala": {**DISCRETE, "episode_len": 5},
    "mappo": {**DISCRETE, "episode_len": 5},
    "ppo": {**DISCRETE, "episode_len": 5},
    "qmix": {
        **DISCRETE, "action_size": [2, 2, 2], "agent_index": False,
        "exploration": {"start": 1.0, "end": 1.0},
    },
    "r2d2": {**DISCRETE, "exploration": {"start": 1.0, "end": 1.0}},
    "sac": CONTINUOUS,
    "trpo": {**DISCRETE, "episode_len": 5},
    "unreal": {**DISCRETE, "episode_len": 5, "pixel_control": False},
}  # fmt: skip

NOISY = {**CONTINUOUS, "exploration": {"type": "normal", "sigma": 0.5}}
PERTURBED = {**CONTINUOUS, "exploration": {"type": "parameters", "sigma": 1.0}}


def agent_of(name, section, experience, **more):
    algorithm = load_algorithm(REPOSITORY / "algorithms" / name)
    config = algorithm.Config(section)
    bridge = algorithm.ParameterServer(config, NullSaver(), NullMetrics()).bridge()
    values = (config, bridge, 1, False)
    if algorithm.has_learner(config):
        return bridge, algorithm.make_batch_agent(*values, experience=experience, **more)
    return bridge, algorithm.make_batch_agent(*values)


def played(evaluator, states=STATES):
    """The actions of many environments that see the same, in two steps."""
    driven = Driven(evaluator)
    slots = driven.open(COUNT)

    def act(flag):
        rewards = np.zeros(COUNT)
        flags = np.full(COUNT, flag, np.uint8)
        return driven.act(Steps(slots, flags, rewards, states, STATES[:0]))

    return np.concatenate([act(START), act(0)])


def cases():
    missing = set(bundled_algorithms()) - set(SECTIONS)
    assert not missing, f"{missing} have no section here"
    return [*SECTIONS.items(), ("ddpg", NOISY)]


@pytest.mark.parametrize(("name", "section"), cases())
def test_the_mode_is_without_noise_and_samples_are_not(name, section):
    kept = Kept()
    bridge, agent = agent_of(name, section, kept)
    with closing(agent):
        with closing(agent.evaluator(Evaluation.DETERMINISTIC)) as evaluator:
            actions = played(evaluator)
            assert len(np.unique(actions)) == 1
            assert evaluator.policies(np.array([0])) == [EvaluatedPolicy(0, 0)]
        with closing(agent.evaluator(Evaluation.STOCHASTIC)) as evaluator:
            assert (len(np.unique(played(evaluator))) > 1) == (name not in DRAW_NOTHING)
    assert kept.rollouts == []
    assert bridge.increment_global_t(0) == 0


@pytest.mark.parametrize("name", ["dqn", "ppo", "sac"])
def test_an_agent_that_is_learnt_from_may_choose_without_noise(name):
    kept = Kept()
    _, agent = agent_of(name, SECTIONS[name], kept, deterministic=True)
    with closing(agent):
        assert len(np.unique(played(agent))) == 1
    assert kept.rollouts != []


@pytest.mark.parametrize("evaluation", Evaluation)
def test_noise_on_parameters_is_no_part_of_an_evaluation(evaluation):
    actions = []
    for section in ({**CONTINUOUS, "exploration": {"sigma": 0.0}}, PERTURBED):
        _, agent = agent_of("ddpg", section, Kept())
        with closing(agent), closing(agent.evaluator(evaluation)) as evaluator:
            actions.append(played(evaluator))
    np.testing.assert_array_equal(*actions)


@pytest.mark.parametrize(
    ("name", "keys"), [("da3c", {}), ("dqn", {}), ("dqn", {"filter_states": True}), ("ppo", {})]
)
def test_a_forbidden_action_is_never_chosen_in_training_nor_in_evaluation(name, keys):
    section = {**SECTIONS[name], **keys, "action_size": 3, "state_size": {"seen": [3]}}
    _, agent = agent_of(name, {**section, "action_mask": "legal"}, Kept())
    masks = np.tile(np.uint8([[0, 1, 1], [1, 0, 0]]), (COUNT // 2, 1))
    states = {"seen": STATES, "legal": masks}
    with closing(agent):
        for acting in (agent, *(agent.evaluator(each) for each in Evaluation)):
            chosen = played(acting, states).reshape(-1, 2)
            assert set(chosen[:, 0]) <= {1, 2}
            assert set(chosen[:, 1]) == {0}


class TestRandomFirstSteps:
    FEW, MANY = ({**CONTINUOUS, "random_steps": steps} for steps in (0, 1000))

    @pytest.mark.parametrize("name", ["ddpg", "sac"])
    def test_are_drawn_evenly_between_the_bounds(self, name):
        _, agent = agent_of(name, self.MANY, Kept())
        with closing(agent):
            actions = np.concatenate([played(agent) for _ in range(10)])
        shares = np.histogram(actions, 4, range=(-2, 2))[0] / len(actions)
        np.testing.assert_allclose(shares, 0.25, atol=0.05)
        assert abs(np.mean(np.abs(actions) < 1) - 0.5) < 0.05

    @pytest.mark.parametrize("evaluation", Evaluation)
    @pytest.mark.parametrize("name", ["ddpg", "sac"])
    def test_are_no_part_of_an_evaluation(self, name, evaluation):
        actions = []
        for section in (self.FEW, self.MANY):
            _, agent = agent_of(name, section, Kept())
            with closing(agent), closing(agent.evaluator(evaluation)) as evaluator:
                actions.append(played(evaluator))
        np.testing.assert_array_equal(*actions)
