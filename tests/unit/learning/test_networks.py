"""Choosing with networks of every kind, against an independent computation in numpy."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from learning_parts import EVALUATED_IN_NUMPY, NETWORKS
from numpy_network import NumpyNetwork
from rollout_samples import random_rollouts

from relaax.learning.arrays import padded_batch
from relaax.learning.distributions import Categorical
from relaax.learning.distributions.categorical_tf import GraphCategorical
from relaax.learning.networks import (
    LSTM,
    Convolution,
    Dense,
    Encoder,
    Head,
    Network,
    initial_parameters,
    layers_tf,
)
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.networks.parameters_tf import ParameterTensors
from relaax.learning.networks.policy_tf import GraphPolicy, policy_of
from relaax.learning.rollouts import Columns
from relaax.observations import mapped

pytestmark = pytest.mark.usefixtures("tensorflow")


def make_case(name):
    """A network, its parameters and its numpy twin; three environments."""
    network, dtype = NETWORKS[name]
    vector = initial_parameters(network.manifest, "uniform", 7)
    tensors = ParameterTensors(network)
    rollouts = random_rollouts(network, dtype=dtype)
    return SimpleNamespace(
        name=name,
        tensors=tensors,
        parameters=tensors.unpack(vector),
        policy=policy_of(network, tensors, Categorical(3), GraphCategorical()),
        graph=GraphPolicy(network, tensors, GraphCategorical()),
        twin=NumpyNetwork(network, network.manifest.unpack(vector)),
        observations=mapped(lambda part: part[0], rollouts.observations),
        state=rollouts.recurrent_state,
    )


def rows_of(observations, begin, end):
    return mapped(lambda part: part[begin:end], observations)


@pytest.fixture(name="case", params=NETWORKS)
def _case(request):
    return make_case(request.param)


def test_choosing_agrees_with_numpy(case):
    assert_that_choices_agree(case.policy, case)


@pytest.mark.xla
def test_choosing_in_a_graph_agrees_with_numpy(case):
    """Three environments, which a graph pads to four."""
    assert_that_choices_agree(case.graph, case)


def assert_that_choices_agree(policy, case):
    for noise in np.random.default_rng(5).gumbel(size=(20, 3, 3)).astype(np.float32):
        choice = policy.choose(case.parameters, case.observations, case.state, noise)
        for row in range(3):
            outputs, after = case.twin.forward(
                rows_of(case.observations, row, row + 1), case.state[:, row : row + 1], [1]
            )
            logits = outputs["policy"][0]
            action = np.argmax(logits + noise[row])
            log_probability = logits[action] - np.log(np.exp(logits).sum())
            assert choice.actions[row] == action
            found = choice.extras["log_probability"][row]
            np.testing.assert_allclose(found, log_probability, rtol=1e-4)
            np.testing.assert_allclose(
                choice.recurrent_state[:, row : row + 1], after, rtol=1e-4, atol=1e-5
            )


def test_networks_without_convolutions_and_memory_are_evaluated_in_numpy(case):
    assert isinstance(case.policy, NumpyPolicy if case.name in EVALUATED_IN_NUMPY else GraphPolicy)


def test_bytes_are_scaled_to_one():
    case = make_case("dense")
    noise = np.zeros((3, 3), np.float32)
    of_bytes = np.full((3, 4), 255, np.uint8)
    of_ones = np.ones((3, 4), np.float32)
    found = [
        case.policy.choose(case.parameters, observations, case.state, noise).extras[
            "log_probability"
        ]
        for observations in (of_bytes, of_ones)
    ]
    np.testing.assert_allclose(*found)


def test_parameters_stand_in_the_order_of_the_layers():
    network = Network.of(
        (20, 20, 3),
        (Convolution(16, 8, 4), Dense(7), LSTM(5)),
        (Head("policy", 2), Head("value", 1)),
    )
    shapes = {spec.name: spec.shape for spec in network.manifest.specs}
    assert shapes == {
        "conv0/kernel": (8, 8, 3, 16),
        "conv0/bias": (16,),
        "dense0/kernel": (4 * 4 * 16, 7),
        "dense0/bias": (7,),
        "lstm/kernel": (7 + 5, 20),
        "lstm/bias": (20,),
        "policy/kernel": (5, 2),
        "policy/bias": (2,),
        "value/kernel": (5, 1),
        "value/bias": (1,),
    }
    assert list(shapes)[:2] == ["conv0/kernel", "conv0/bias"]


def test_parameters_of_encoders_begin_with_the_names_of_observations():
    """In the order of these names, however a configuration has them ordered."""
    network, _ = NETWORKS["two vectors"]
    encoders = dict(reversed(network.encoders.items()))
    assert {spec.name: spec.shape for spec in network.manifest.specs} == {
        "b/c/norm0/scale": (3,),
        "b/c/norm0/offset": (3,),
        "b/c/dense0/kernel": (3, 4),
        "b/c/dense0/bias": (4,),
        "dense0/kernel": (6 + 4, 6),
        "dense0/bias": (6,),
        "norm0/scale": (6,),
        "norm0/offset": (6,),
        "policy/kernel": (6, 2),
        "policy/bias": (2,),
        "policy/free": (1,),
        "value/kernel": (6, 1),
        "value/bias": (1,),
    }
    camera, _ = NETWORKS["camera and speed"]
    reordered = dataclasses.replace(camera, encoders=dict(reversed(camera.encoders.items())))
    assert reordered == camera
    assert reordered.manifest == camera.manifest
    assert dataclasses.replace(network, encoders=encoders).manifest == network.manifest


def test_a_head_does_not_depend_on_an_observation_that_it_does_not_see():
    """And where it alone acts, that observation need not even be there."""
    network, _ = NETWORKS["critic sees more"]
    tensors = ParameterTensors(network)
    parameters = tensors.unpack(initial_parameters(network.manifest, "uniform", 7))
    policy = policy_of(network, tensors, Categorical(3), GraphCategorical())
    seen, noise = {"all": np.ones((1, 3), np.float32)}, np.zeros((1, 3), np.float32)
    choice = policy.choose(parameters, seen, np.zeros((2, 1, 4), np.float32), noise)
    assert choice.actions.shape == (1,)
    assert network.seen_by([network.head("policy")]) == ("all",)


def test_parameters_of_an_observation_stand_where_it_is_seen():
    network, _ = NETWORKS["critic sees more"]
    shapes = {spec.name: spec.shape for spec in network.manifest.specs}
    assert shapes["dense0/kernel"] == (4, 6)
    assert shapes["policy/kernel"] == (4, 3)
    assert shapes["value/dense0/kernel"] == (4 + 3, 5)
    alone = dataclasses.replace(network, heads=(Head("policy", 3, sees=("all",)),))
    assert not any(spec.name.startswith("hidden") for spec in alone.manifest.specs)


def test_a_head_without_a_linear_layer_has_as_many_units_as_its_layers_put_out():
    head = Head("pixels", 9, layers=(Dense(8),), is_linear=False)
    with pytest.raises(ValueError, match="pixels: its layers put out 8 numbers, not 9"):
        Network.of((4,), (), (head,)).manifest  # noqa: B018


def network_with_frames():
    """Two encoders, a recurrent layer, and a head over three frames of one of the observations."""
    encoders = {"camera": Encoder((6,), (Dense(5),)), "speed": Encoder((2,), (Dense(3),))}
    change = Head("change", 2, layers=(Dense(7),), sees=("camera",), frames=3)
    return Network(encoders, (LSTM(4),), (Head("policy", 3), change, Head("value", 1)))


def test_a_head_over_frames_sees_encoders_alone_one_frame_after_another():
    network, random = network_with_frames(), np.random.default_rng(0)
    vector = initial_parameters(network.manifest, "uniform", 7)
    tensors, parameters = ParameterTensors(network), network.manifest.unpack(vector)
    camera = random.normal(size=(3, 2, 6)).astype(np.float32)

    found = layers_tf.frames_outputs(
        network,
        network.head("change"),
        tensors.by_name(tensors.unpack(vector).tensors),
        {"camera": camera},
    )

    def dense(name, inputs):
        return inputs @ parameters[f"{name}/kernel"] + parameters[f"{name}/bias"]

    frames = np.concatenate([np.maximum(dense("camera/dense0", each), 0) for each in camera], 1)
    expected = dense("change", np.maximum(dense("change/dense0", frames), 0))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_head_over_frames_changes_nothing_of_other_heads():
    network = network_with_frames()
    others = dataclasses.replace(network, heads=network.joining)
    assert [head.name for head in network.joining] == ["policy", "value"]
    assert network.shared == others.shared == ("camera", "speed")
    assert network.seen_by([network.head("change")]) == ("camera",)
    shapes = {spec.name: spec.shape for spec in network.manifest.specs}
    own = {name: shape for name, shape in shapes.items() if name.startswith("change")}
    assert own["change/dense0/kernel"] == (3 * 5, 7)
    assert {**own, **{spec.name: spec.shape for spec in others.manifest.specs}} == shapes


def test_layers_count_on_from_an_observation_without_a_name_to_those_on_top_of_it():
    network = Network({"": Encoder((4,), (Dense(3),))}, (Dense(2), LSTM(2)), (Head("policy", 2),))
    names = [spec.name for spec in network.manifest.specs[::2]]
    assert names == ["dense0/kernel", "dense1/kernel", "lstm/kernel", "policy/kernel"]


def test_a_head_that_is_free_of_the_state_is_a_parameter_alone():
    network = Network.of((4,), (Dense(3),), (Head("policy", 0, free_units=3, free_start=0.5),))
    assert network.manifest.specs[-1].name == "policy/free"
    tensors = ParameterTensors(network)
    parameters = tensors.unpack(initial_parameters(network.manifest, "uniform", 7))
    np.testing.assert_array_equal(parameters.arrays["policy/free"], np.full(3, 0.5, np.float32))
    observations = np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32)
    noise = np.array([[0, 1, 0], [0, 0, 1]], np.float32)
    for policy in (
        NumpyPolicy(network, Categorical(3)),
        GraphPolicy(network, tensors, GraphCategorical()),
    ):
        choice = policy.choose(parameters, observations, np.zeros((2, 2, 0), np.float32), noise)
        assert choice.actions.tolist() == [1, 2]
        np.testing.assert_allclose(choice.extras["log_probability"], -np.log([3, 3]), rtol=1e-6)


@pytest.mark.parametrize("kind", [NumpyPolicy, GraphPolicy])
@pytest.mark.parametrize("name", ["dense", "own layers", "nothing shared", "two vectors"])
def test_all_that_is_recorded_of_a_choice_is_handed_over_by_name(kind, name):
    case, extras = make_case(name), ("log_probability", "distribution", "noise", "value")
    parts = (case.tensors, GraphCategorical()) if kind is GraphPolicy else (Categorical(3),)
    noise = np.random.default_rng(5).gumbel(size=(3, 3)).astype(np.float32)
    model = kind(case.twin.network, *parts, extras)
    choice = model.choose(case.parameters, case.observations, case.state, noise)
    outputs, _ = case.twin.forward(case.observations, case.state, [1])
    assert set(choice.extras) == set(extras)
    np.testing.assert_allclose(choice.extras["distribution"], outputs["policy"], atol=1e-5)
    np.testing.assert_allclose(choice.extras["value"], outputs["value"], atol=1e-5)
    np.testing.assert_array_equal(choice.extras["noise"], noise)
    declared = Columns.of(case.twin.network, Categorical(3), extras=extras).extras
    assert {name: array.shape[1:] for name, array in choice.extras.items()} == {
        name: column.shape for name, column in declared.items()
    }


def test_an_extra_that_nothing_makes_is_refused_by_name():
    network, _ = NETWORKS["dense"]
    with pytest.raises(ValueError, match="extras: q: there is agent, distribution, group"):
        Columns.of(network, Categorical(3), extras=["q"])


@pytest.mark.parametrize("way", ["policy", "graph"])
def test_a_batch_that_is_padded_already_is_chosen_for_like_one_that_is_not(case, way):
    policy = getattr(case, way)
    noise = np.random.default_rng(5).gumbel(size=(3, 3)).astype(np.float32)
    rows = policy.batch_size(3)
    padded = mapped(lambda part: padded_batch(part, rows), case.observations)
    choices = [
        policy.choose(case.parameters, observations, case.state, noise)
        for observations in (case.observations, padded)
    ]
    for name in ("actions", "recurrent_state"):
        np.testing.assert_array_equal(*(getattr(choice, name) for choice in choices))
    np.testing.assert_array_equal(*(choice.extras["log_probability"] for choice in choices))
    assert [len(choice.actions) for choice in choices] == [3, 3]
