"""DA3C with a described network, named observations and masks of actions."""

import dataclasses
import importlib
import json

import numpy as np
import pytest
from pydantic import ValidationError
from rollout_samples import random_rollouts

from relaax.algorithm_base import NullMetrics, NullSaver
from relaax.learning.distributions.categorical_tf import GraphCategorical
from relaax.learning.gradients_tf import RolloutGradients
from relaax.learning.networks import LSTM, Dense, Head, Network, initial_parameters
from relaax.learning.networks.parameters_tf import ParameterTensors
from relaax.learning.networks.policy_tf import GraphPolicy
from relaax.learning.rollouts import Columns

VECTOR = {"action_size": 2, "state_size": [4]}
NAMED = {"action_size": 3, "state_size": {"camera": [84, 84], "arm": {"speed": [3]}}}


def test_a_network_may_be_described(da3c):
    network = da3c.Config({**VECTOR, "network": [{"dense": 16}, {"lstm": 8}]}).network
    assert [spec.shape for spec in network.manifest.specs[::2]] == [
        (4, 16), (16 + 8, 32), (8, 2), (8, 1),
    ]  # fmt: skip


def test_a_described_network_that_is_the_default_one_goes_on_from_its_checkpoints(da3c):
    """And these say what checkpoints have always said."""
    plain, described = (
        da3c.Config({**VECTOR, **keys})
        for keys in (
            {"lstm": True, "lstm_size": 8},
            {"network": [{"dense": 64}, {"dense": 64}, {"lstm": 8}]},
        )
    )
    assert described.network == plain.network
    assert described.fingerprint() == {
        "algorithm": "da3c",
        "observation_shape": [4],
        "action_size": 2,
        "convolutions": [],
        "dense_units": [64, 64],
        "lstm_size": 8,
    }


@pytest.mark.parametrize(
    "section",
    [
        {**VECTOR, "network": [{"dense": {"units": 64, "activation": "tanh"}}, {"dense": 64}]},
        {**VECTOR, "network": [{"dense": 64}, "layer_norm"]},
        NAMED,
        {**VECTOR, "network": {"layers": [{"dense": 64}], "heads": {"value": [{"dense": 64}]}}},
    ],
)
def test_checkpoints_of_other_networks_say_all_that_describes_them(da3c, section):
    config = da3c.Config(section)
    fingerprint = config.fingerprint()
    assert json.loads(json.dumps(fingerprint)) == fingerprint
    assert fingerprint != da3c.Config(VECTOR).fingerprint()
    assert config.network.manifest.size != 0


def test_the_fingerprint_of_named_observations_is_readable(da3c):
    section = {**NAMED, "state_size": {"speed": [3], "arm": [2]}, "network": {"layers": []}}
    assert da3c.Config(section).fingerprint() == {
        "algorithm": "da3c",
        "action_size": 3,
        "observations": [
            "arm [2]: dense(units=64, activation=relu)",
            "speed [3]: dense(units=64, activation=relu)",
        ],
        "layers": "",
    }


@pytest.mark.parametrize("key", ["hidden_layers", "lstm", "lstm_size"])
def test_a_network_is_described_in_one_place(da3c, key):
    value = {"hidden_layers": [4], "lstm": True, "lstm_size": 4}[key]
    with pytest.raises(ValidationError, match=f"network and {key} exclude each other"):
        da3c.Config({**VECTOR, key: value, "network": []})


def test_a_mistake_in_a_network_names_the_layer(da3c):
    with pytest.raises(ValueError, match=r"^network: layers: layer 1 \(dense\): unit: no such key"):
        da3c.Config({**VECTOR, "network": [{"dense": {"unit": 4}}]})


def test_named_observations_have_encoders_by_their_shapes(da3c):
    config = da3c.Config({**NAMED, "history_len": {"camera": 4}})
    assert config.network.observation_shape == {"camera": (84, 84, 4), "arm/speed": (3,)}
    shapes = {spec.name: spec.shape for spec in config.network.manifest.specs}
    assert shapes["camera/conv0/kernel"] == (8, 8, 4, 16)
    assert shapes["dense0/kernel"] == (64 + 256, 256)


def test_named_observations_are_a_dict_space(da3c):
    config = da3c.Config({**NAMED, "action_mask": "legal"})
    assert config.observation_space() == {
        "type": "Dict",
        "spaces": {
            "camera": {"type": "Box", "shape": [84, 84]},
            "arm/speed": {"type": "Box", "shape": [3]},
            "legal": {"type": "Box", "shape": [3], "action_mask": True},
        },
    }


def test_a_mask_is_no_input_of_the_network(da3c):
    """Whether ``state_size`` names it or not."""
    section = {"action_size": 3, "action_mask": "legal"}
    configs = [
        da3c.Config({**section, "state_size": size})
        for size in ({"speed": [2]}, {"speed": [2], "legal": [3]})
    ]
    assert configs[0].network == configs[1].network
    assert configs[0].network.observation_shape == {"speed": (2,)}
    assert configs[0].observation_space() == configs[1].observation_space()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state_size": {}}, "state_size"),
        ({"state_size": {"": [3]}}, "state_size"),
        ({"state_size": {"speed": [1, 2, 3, 4]}}, "state_size.*speed"),
        ({"state_size": {"speed": [0]}}, "state_size.*speed"),
        ({"state_size": 4}, "state_size"),
        ({"history_len": {"sped": 2}}, "history_len: sped: state_size has no such observation"),
        ({"history_len": {"speed": 0}}, "history_len"),
        ({"action_mask": "legal", "state_size": [2]}, "action_mask names one of several"),
        (
            {"action_mask": "legal", "state_size": {"speed": [2], "legal": [4]}},
            r"state_size: legal: an action mask has a number for each action, \[3\], is \[4\]",
        ),
    ],
)
def test_sizes_and_masks_that_do_not_fit_are_named(da3c, changes, reason):
    with pytest.raises(ValueError, match=reason):
        da3c.Config({"action_size": 3, "state_size": {"speed": [2]}, **changes})


HEADS = [(Head("policy", actions), Head("value", 1)) for actions in (3, 2)]


def masked_rollouts(network):
    """Rollouts of two actions, and the same with a third that is forbidden in each step.

    In rows that are not valid nothing is allowed.
    """
    rollouts = random_rollouts(network, actions=2)
    allowed = np.tile(np.array([1, 1, 0], np.uint8), (*rollouts.starts.shape, 1))
    allowed[:-1][rollouts.valid == 0] = 0
    observations = {"x": rollouts.observations, "legal": allowed}
    return rollouts, dataclasses.replace(rollouts, observations=observations)


@pytest.mark.parametrize(
    "changes", [{}, {"policy_clip": 0.2}, pytest.param({"vtrace": True}, marks=pytest.mark.xla)]
)
@pytest.mark.usefixtures("da3c")
def test_a_masked_action_has_no_part_in_the_loss_and_no_gradient(da3c, changes):
    """Loss and gradient are those of a network that has never heard of the action."""
    da3c.prepare_to_fork()
    few = Network.of((4,), (Dense(5),), HEADS[1])
    many = Network({"x": few.encoders[""]}, (), HEADS[0])
    weights = few.manifest.unpack(initial_parameters(few.manifest, "uniform", 3))
    wider = {f"x/{name}" if name.startswith("dense") else name: w for name, w in weights.items()}
    wider["policy/kernel"] = np.pad(weights["policy/kernel"], [(0, 0), (0, 1)], constant_values=9)
    wider["policy/bias"] = np.pad(weights["policy/bias"], [(0, 1)], constant_values=9)
    plain, masked = masked_rollouts(few)
    found = [
        gradient_of(da3c, few, weights, plain, changes),
        gradient_of(da3c, many, wider, masked, {**changes, "action_mask": "legal"}),
    ]
    for name, term in found[0].terms.items():
        assert found[1].terms[name] == pytest.approx(term, rel=1e-5)
    of_few = few.manifest.unpack(found[0].vector)
    of_many = many.manifest.unpack(found[1].vector)
    assert not of_many["policy/kernel"][:, 2].any()
    assert of_many["policy/bias"][2] == 0
    np.testing.assert_allclose(of_many["policy/kernel"][:, :2], of_few["policy/kernel"], 1e-4, 1e-6)
    np.testing.assert_allclose(of_many["x/dense0/kernel"], of_few["dense0/kernel"], 1e-4, 1e-6)


def gradient_of(da3c, network, weights, rollouts, changes):
    section = {"action_size": 3, "state_size": {"x": [4]}, "entropy_beta": 0.1, **changes}
    settings = da3c.Config(section).settings
    objective = importlib.import_module(f"{da3c.__name__}.method_tf").ActorCritic(
        distribution=GraphCategorical(),
        discount=settings.rewards_gamma,
        trace_decay=settings.trace_decay,
        entropy_beta=settings.entropy_beta,
        value_loss_weight=settings.value_loss_weight,
        normalize_advantages=False,
        policy_clip=settings.policy_clip,
        vtrace=settings.vtrace,
        action_mask=settings.action_mask,
    )
    tensors = ParameterTensors(network)
    columns = Columns((4,), np.float32, (), np.int32)
    model = RolloutGradients(network, tensors, objective, 5, columns)
    return model.gradient(tensors.unpack(network.manifest.pack(weights)), rollouts)


@pytest.mark.usefixtures("da3c")
def test_a_graph_chooses_what_masks_allow():
    network = Network({"x": Network.of((4,), (), HEADS[0]).encoders[""]}, (LSTM(4),), HEADS[0])
    tensors = ParameterTensors(network)
    parameters = tensors.unpack(initial_parameters(network.manifest, "uniform", 3))
    policy = GraphPolicy(network, tensors, GraphCategorical(), action_mask="legal")
    random = np.random.default_rng(3)
    legal = random.integers(0, 2, (50, 3)).astype(np.uint8)
    legal[:, 1] = 1 - legal[:, 0]
    observations = {"x": random.normal(size=(50, 4)).astype(np.float32), "legal": legal}
    choice = policy.choose(
        parameters,
        observations,
        np.zeros((2, 50, 4), np.float32),
        random.gumbel(size=(50, 3)).astype(np.float32),
    )
    assert legal[np.arange(50), choice.actions].all()
    assert np.isfinite(choice.extras["log_probability"]).all()


def one_of_three_is_allowed(legal, action):
    return legal[action]


def both_choices_are_allowed(legal, action):
    return legal[:3][action[0]] and legal[3:][action[1]]


def no_forbidden_bit_is_set(legal, action):
    return (action.ravel() <= legal).all()


@pytest.mark.parametrize(
    "network", [None, {"layers": [{"lstm": 4}]}, {"encoders": {"x": [{"dense": 4}]}}]
)
@pytest.mark.parametrize(
    ("keys", "numbers", "is_allowed"),
    [
        ({"action_size": 3}, 3, one_of_three_is_allowed),
        ({"action_size": [3, 2]}, 5, both_choices_are_allowed),
        ({"action_bits": [2, 2]}, 4, no_forbidden_bit_is_set),
    ],
    ids=["categorical", "choices", "bits"],
)
def test_a_whole_agent_acts_and_learns_within_its_masks(da3c, network, keys, numbers, is_allowed):
    """Forbidden numbers earn most. Of each choice the first action is always allowed."""
    section = {**keys, "state_size": {"x": [2], "sight": [20, 20]}, "seed": 2}
    config = da3c.Config({**section, "action_mask": "legal", "network": network})
    parameter_server = da3c.ParameterServer(config, NullSaver(), NullMetrics())
    agent = da3c.Agent(config, parameter_server.bridge())
    state = {"x": [0, 1], "sight": np.zeros((20, 20), np.uint8)}
    random = np.random.default_rng(4)
    legal = np.ones(numbers, np.int64)
    action = agent.act({**state, "legal": legal})
    for _ in range(60):
        assert is_allowed(legal, action)
        legal = random.integers(0, 2, numbers)
        legal[[0, -2]] = 1
        action = agent.reward_and_act(float(np.sum(action)), {**state, "legal": legal})
    assert parameter_server.global_t() == 60
    assert np.isfinite(parameter_server.bridge().get_values().vector).all()
