"""Networks as configurations describe them, and what is said about mistakes in them."""

import json

import pytest

from relaax.learning.networks import (
    LSTM,
    Convolution,
    Dense,
    Encoder,
    Head,
    LayerNorm,
    Network,
    Reshape,
    TransposedConvolution,
    default_network,
    read_network,
)

HEADS = (Head("policy", 2), Head("value", 1))
VECTOR = (4,)
SHAPES = {"camera": (84, 84, 4), "speed": (3,), "arm/joints": (6,)}


def read(section, shape=VECTOR):
    return read_network(section, shape, HEADS)


def mistake(section, shape=VECTOR):
    """The one line that is said about a description."""
    with pytest.raises(ValueError, match="network") as refusal:
        read(section, shape)
    (line,) = str(refusal.value).splitlines()
    return line


@pytest.mark.parametrize(
    ("written", "layer"),
    [
        ({"dense": {"units": 32}}, Dense(32)),
        ({"dense": 32}, Dense(32)),
        ({"dense": {"units": 32, "activation": "swish"}}, Dense(32, "swish")),
        ({"lstm": {"units": 8}}, LSTM(8)),
        ({"lstm": 8}, LSTM(8)),
        ({"layer_norm": {"activation": "tanh"}}, LayerNorm("tanh")),
        ({"layer_norm": {}}, LayerNorm()),
        ({"layer_norm": None}, LayerNorm()),
        ("layer_norm", LayerNorm()),
        ({"reshape": {"shape": [2, 2, 1]}}, Reshape((2, 2, 1))),
    ],
)
def test_a_layer_is_its_kind_and_its_values(written, layer):
    assert read([written]) == Network.of(VECTOR, (layer,), HEADS)


def test_heads_may_have_layers_of_their_own():
    heads = {"policy": [{"dense": 8}], "value": [{"dense": 16}, "layer_norm"]}
    network = read({"layers": [{"dense": 32}], "heads": heads})
    policy, value = network.heads
    assert network.encoders[""].layers == (Dense(32),)
    assert (policy.layers, value.layers) == ((Dense(8),), (Dense(16), LayerNorm()))
    assert [spec.shape for spec in network.manifest.specs if spec.name.endswith("kernel")] == [
        (4, 32), (32, 8), (8, 2), (32, 16), (16, 1),
    ]  # fmt: skip


def test_a_head_that_is_not_described_has_no_layers():
    network = read({"heads": {"value": [{"dense": 16}]}}, SHAPES)
    assert network.head("policy").layers == ()
    assert network.head("value").layers == (Dense(16),)


def test_a_head_that_is_not_described_keeps_the_layers_that_an_algorithm_gives_it():
    heads = (Head("policy", 2, layers=(Dense(8),)), Head("value", 1, layers=(Dense(8),)))
    network = read_network({"heads": {"value": [{"dense": 16}]}}, (4,), heads)
    assert [head.layers for head in network.heads] == [(Dense(8),), (Dense(16),)]


def test_a_head_may_see_more_than_another():
    heads = {
        "policy": {"sees": ["speed"]},
        "value": {"sees": ["speed", "arm/joints"], "layers": [{"dense": 8}]},
    }
    network = read({"layers": [{"dense": 32}], "heads": heads}, SHAPES)
    assert network.head("policy").sees == ("speed",)
    assert network.head("value") == Head("value", 1, 0, 0.0, (Dense(8),), ("arm/joints", "speed"))
    kernels = {spec.name: spec.shape for spec in network.manifest.specs}
    assert kernels["dense0/kernel"] == (64, 32)
    assert kernels["value/dense0/kernel"] == (32 + 64, 8)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (
            {"heads": {"value": {"sees": ["speed"]}}},
            "network: heads: policy: sees is missing: where one head has it, all have",
        ),
        (
            {"heads": {"value": {"sees": ["sped"]}, "policy": {"sees": ["speed"]}}},
            "network: heads: value: sees: sped: no such observation; did you mean speed?",
        ),
        (
            {"heads": {"policy": {"sees": "speed"}}},
            "network: heads: policy: sees: must be a list of observations, is 'speed'",
        ),
        (
            {"heads": {"value": {"see": []}}},
            "network: heads: value: see: no such key; did you mean sees?",
        ),
        (
            {
                "layers": [{"dense": 4}],
                "heads": {"value": {"sees": ["speed"]}, "policy": {"sees": ["camera"]}},
            },
            "network: layers: no observation is seen by all heads, and so none by layers",
        ),
    ],
)
def test_a_mistake_in_what_a_head_sees_names_it(section, said):
    assert mistake(section, {"camera": (84, 84, 4), "speed": (3,)}) == said


def test_a_head_sees_an_observation_without_a_name_anyway():
    assert mistake({"heads": {"value": {"sees": ["x"]}}}) == (
        "network: heads: value: sees: the observation has no name"
    )


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ({"valu": []}, "network: heads: valu: no such head; did you mean value?"),
        ([], "network: heads: must be lists of layers by name, is []"),
        (
            {"value": [{"lstm": 4}]},
            "network: heads: value: layer 1 (lstm): a recurrent layer can only be the last one "
            "under 'layers', after the encoders and all other layers",
        ),
    ],
)
def test_a_mistake_in_a_head_names_it(heads, said):
    assert mistake({"layers": [], "heads": heads}) == said


def test_a_convolution_has_a_stride_of_one_and_no_padding_unless_it_says_so():
    layers = [
        {"conv2d": {"filters": 4, "kernel": 5}},
        {"conv2d": {"filters": 8, "kernel": 3, "stride": 2, "padding": "same"}},
    ]
    expected = (Convolution(4, 5, 1, "valid", "relu"), Convolution(8, 3, 2, "same"))
    assert read(layers, (9, 9, 1)) == Network.of((9, 9, 1), expected, HEADS)


def test_a_transposed_convolution_makes_an_image_larger_by_its_stride_and_its_kernel():
    layers = [
        {"reshape": {"shape": [2, 2, 1]}},
        {"conv2d_transpose": {"filters": 4, "kernel": 3, "stride": 2}},
        {"conv2d_transpose": {"filters": 1, "kernel": 3, "stride": 2, "padding": "same"}},
    ]
    network = read(layers)
    assert network.encoders[""].layers[1] == TransposedConvolution(4, 3, 2, "valid", "relu")
    assert network.feature_size(network.head("value")) == 10 * 10 * 1


def test_a_list_is_short_for_the_layers_of_one_observation():
    layers = [{"dense": 16}, {"lstm": 8}]
    assert read(layers) == read({"layers": layers})


def test_without_layers_the_heads_see_the_observation_itself():
    assert read([]) == read({"layers": None}) == Network.of(VECTOR, (), HEADS)


def test_each_observation_has_an_encoder_and_their_outputs_are_joined():
    network = read(
        {
            "encoders": {
                "camera": [{"conv2d": {"filters": 4, "kernel": 8, "stride": 4}}],
                "speed": [],
                "arm": {"joints": ["layer_norm", {"dense": 5}]},
            },
            "layers": [{"dense": 7}, {"lstm": 6}],
        },
        SHAPES,
    )
    assert network.encoders == {
        "camera": Encoder((84, 84, 4), (Convolution(4, 8, 4),)),
        "speed": Encoder((3,), ()),
        "arm/joints": Encoder((6,), (LayerNorm(), Dense(5))),
    }
    assert network.layers == (Dense(7), LSTM(6))
    shapes = {spec.name: spec.shape for spec in network.manifest.specs}
    assert shapes["dense0/kernel"] == (20 * 20 * 4 + 3 + 5, 7)
    assert shapes["lstm/kernel"] == (7 + 6, 4 * 6)


def test_an_observation_that_is_not_described_has_an_encoder_by_its_shape():
    network = read({"encoders": {"arm/joints": []}, "layers": []}, SHAPES)
    assert network.encoders["speed"].layers == (Dense(64),)
    images = (Convolution(16, 8, 4), Convolution(32, 4, 2), Dense(256))
    assert network.encoders["camera"].layers == images
    assert default_network(SHAPES, (), HEADS).encoders["camera"].layers == images


@pytest.mark.parametrize("name", ["net.json", "net.yaml", "net.yml"])
def test_a_network_may_be_in_a_file_of_its_own(name, tmp_path, monkeypatch):
    description = {"layers": [{"dense": {"units": 3}}]}
    (tmp_path / name).write_text(json.dumps(description))  # which is YAML, too
    monkeypatch.chdir(tmp_path)
    assert read(name) == read(str(tmp_path / name)) == read(description)


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        ({"desne": 4}, "layer 2: desne: no such kind of layer; did you mean dense?"),
        (
            {"attention": 4},
            "layer 2: attention: no such kind of layer; there is dense, shared_dense, conv2d, "
            "conv2d_transpose, reshape, lstm and layer_norm",
        ),
        ({"dense": {}}, "layer 2 (dense): units is missing"),
        ({"dense": {"unit": 4}}, "layer 2 (dense): unit: no such key; did you mean units?"),
        ({"lstm": {"size": 4}}, "layer 2 (lstm): size: no such key; there is units"),
        ({"dense": 0}, "layer 2 (dense): units: must be a whole number above 0, is 0"),
        ({"dense": True}, "layer 2 (dense): must be a section with units and activation, is True"),
        (
            {"dense": {"units": "64"}},
            "layer 2 (dense): units: must be a whole number above 0, is '64'",
        ),
        (
            {"dense": {"units": 4, "activation": "rleu"}},
            "layer 2 (dense): activation: must be linear, relu, tanh, elu, silu, swish or "
            "sigmoid, is 'rleu'; did you mean relu?",
        ),
        (
            {"type": "dense", "units": 4},
            "layer 2: must be one kind of layer with its values, such as {dense: {units: 64}}, "
            "is {'type': 'dense', 'units': 4}",
        ),
        (
            {"conv2d": {"filters": 4, "kernel": 3}},
            "layer 2 (conv2d): needs an image [height, width, channels], its input is [8]",
        ),
        (
            {"lstm": 4},
            "layer 2 (lstm): a recurrent layer can only be the last one under 'layers', after "
            "the encoders and all other layers",
        ),
        (
            {"reshape": {"shape": [3, 3]}},
            "layer 2 (reshape): shape [3, 3] has 9 numbers, its input [8] has 8",
        ),
        (
            {"reshape": {"shape": [2, -4]}},
            "layer 2 (reshape): shape: must be a list of whole numbers above 0, is -4 there",
        ),
        (
            {"shared_dense": {"units": 4, "parts": 3}},
            "layer 2 (shared_dense): 8 numbers cannot be cut into 3 equal parts",
        ),
        ({"shared_dense": 4}, "layer 2 (shared_dense): parts is missing"),
        (7, "layer 2: must be one kind of layer"),
    ],
)
def test_a_wrong_layer_is_named_with_its_position_and_what_is_wrong(layer, said):
    assert mistake([{"dense": 8}, layer, {"dense": 8}]).startswith(f"network: layers: {said}")


def test_an_image_that_becomes_too_small_is_named_with_the_layer_where_it_does():
    layers = [{"conv2d": {"filters": 4, "kernel": 8, "stride": 4}}] * 2
    assert mistake(layers, (28, 28, 1)) == (
        "network: layers: layer 2 (conv2d): the image has become too small: it is 6x6, the "
        "kernel 8x8"
    )


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"layer": []}, "network: layer: no such key; did you mean layers?"),
        ({"head": []}, "network: head: no such key; did you mean heads?"),
        (
            {"trunk": []},
            "network: trunk: no such key; there is encoders, layers, heads and previous",
        ),
        (
            64,
            "network: must be a list of layers, or a section with encoders, layers, heads and "
            "previous, is 64",
        ),
        ({"layers": {"dense": 4}}, "network: layers: must be a list of layers"),
        (
            {"encoders": {"camera": []}},
            "network: encoders: the observation has no name; write its layers under 'layers'",
        ),
    ],
)
def test_a_wrong_section_is_named(section, said):
    assert mistake(section).startswith(said)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (
            {"encoders": {"sped": []}},
            "network: encoders: sped: no such observation; did you mean speed?",
        ),
        (
            {"encoders": {"sonar": []}},
            "network: encoders: sonar: no such observation; there is camera, speed and arm/joints",
        ),
        (
            {"encoders": {"arm": {"joints": []}, "arm/joints": []}},
            "network: encoders: two observations are named 'arm/joints'",
        ),
        ({"encoders": [{"dense": 4}]}, "network: encoders: must be lists of layers by name"),
        (
            {"encoders": {"speed": [{"dense": 4}, {"lstm": 4}]}},
            "network: encoders: speed: layer 2 (lstm): a recurrent layer can only be the last",
        ),
        (
            {"layers": [{"conv2d": {"filters": 4, "kernel": 3}}], "encoders": {"camera": []}},
            "network: layers: layer 1 (conv2d): needs an image [height, width, channels], its "
            f"input is [{84 * 84 * 4 + 64 + 64}]",
        ),
    ],
)
def test_a_wrong_encoder_is_named(section, said):
    assert mistake(section, SHAPES).startswith(said)


def test_an_observation_with_the_name_of_a_head_that_has_layers_is_refused():
    shapes = {"value": (3,), "speed": (2,)}
    assert mistake({"heads": {"value": [{"dense": 4}]}}, shapes).startswith(
        "network: heads: an observation cannot be named value: so is a head with layers of its own"
    )
    names = [spec.name for spec in read_network({}, shapes, HEADS).manifest.specs]
    assert len(set(names)) == len(names)


def test_the_previous_action_and_reward_are_inputs_beside_the_observations():
    section = {
        "previous": ["action", "reward"],
        "encoders": {"previous": {"reward": [{"dense": {"units": 2, "activation": "tanh"}}]}},
        "layers": [{"dense": 5}, {"lstm": 6}],
    }
    for shape, observed in ((VECTOR, 4), ({"speed": (3,)}, 64)):
        network = read_network(section, shape, HEADS, previous=3)
        shapes = {spec.name: spec.shape for spec in network.manifest.specs}
        assert shapes["dense0/kernel"] == (observed + 3 + 2, 5)
        assert shapes["previous/reward/dense0/kernel"] == (1, 2)


def test_the_previous_action_is_joined_behind_the_convolutions_of_an_image_without_a_name():
    layers = [{"conv2d": {"filters": 2, "kernel": 3}}, "layer_norm", {"dense": 5}, {"lstm": 6}]
    section = {"previous": ["action"], "layers": layers}
    network = read_network(section, (5, 5, 1), HEADS, previous=3)
    names = [spec.name for spec in network.manifest.specs[::2]]
    assert names[:4] == ["conv0/kernel", "norm0/scale", "dense0/kernel", "lstm/kernel"]
    assert network.manifest.specs[4].shape == (3 * 3 * 2 + 3, 5)


@pytest.mark.parametrize(
    ("section", "previous", "said"),
    [
        ({"previous": ["action"]}, 0, "this algorithm has no previous action and reward"),
        ({"previous": True}, 3, "must be a list of action and reward, is True"),
        ({"previous": ["acton"]}, 3, "acton: no such input; did you mean action?"),
    ],
)
def test_a_mistake_in_the_previous_inputs_names_it(section, previous, said):
    with pytest.raises(ValueError, match="previous") as refusal:
        read_network(section, VECTOR, HEADS, previous)
    assert str(refusal.value) == f"network: previous: {said}"


def test_a_small_image_without_an_encoder_is_named():
    assert mistake({}, {"view": (7, 7, 3)}) == (
        "network: encoders: view: an image of [7, 7] is too small for the default convolutions, "
        "which need [20, 20]; describe layers of its own with the key 'network'"
    )


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("net.json", '{"layers": [\n{"dense": 4},\n]}', "network: net.json, line "),
        ("net.yaml", "layers:\n  - dense: [4\n", "network: net.yaml, line 3: "),
        ("net.json", '[{"dense": 0}]', "network: net.json: layers: layer 1 (dense): units: must"),
        ("net.json", '"net.json"', "network: net.json: must be a list of layers, or a section"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_the_file(name, text, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    assert mistake(name).startswith(said)


def test_a_file_that_is_not_there_is_named_with_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert mistake("nets/big.json") == (
        f"network: nets/big.json: cannot be read: No such file or directory; "
        f"looked beside the configuration and in {tmp_path}"
    )


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("deep.yaml", "[" * 5000, "line 1: values lie in each other on more than 64 levels"),
        ("deep.json", "[" * 100_000, "values lie in each other on too many levels"),
        ("self.yaml", "&a [*a]", "line 1: an alias stands for what it is a part of"),
        ("laughs.yaml", "a: &a [" + "1, " * 1000 + "]\nb: [" + "*a, " * 1000 + "]", "10000 values"),
    ],
)
def test_a_file_that_grows_when_it_is_read_is_refused(name, text, said, tmp_path):
    (tmp_path / name).write_text(text)
    assert said in mistake(str(tmp_path / name))
