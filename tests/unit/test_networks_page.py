"""docs/networks.md: its examples are configurations that DA3C takes, its messages are said."""

import dataclasses
import re
from pathlib import Path

import pytest
import yaml

from relaax.learning.networks import LSTM, Dense, Head, Network
from relaax.learning.networks.layers import KINDS
from relaax.learning.networks.reading import read_network

PAGE = (Path(__file__).parent.parent.parent / "docs" / "networks.md").read_text()


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    return [code for found, code in fenced if found == language]


EXAMPLES = [yaml.safe_load(block)["algorithm"] for block in blocks("yaml")]


@pytest.fixture(name="networks")
def _networks(da3c, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (json,) = blocks("json")
    (tmp_path / "nature.json").write_text(json)
    sections = [{key: example[key] for key in example if key != "name"} for example in EXAMPLES]
    return [da3c.Config(section).network for section in sections]


def test_every_example_makes_a_network(networks):
    assert len(networks) == 7
    assert all(network.manifest.size for network in networks)


def test_the_examples_are_what_the_page_says(networks):
    vector, own, nature, named, more, before, masked = networks
    assert vector.layers == (LSTM(32),)
    assert own.encoders[""].layers == ()
    assert [head.layers for head in own.heads] == [(Dense(64, "tanh"), Dense(64, "tanh"))] * 2
    nature_kernels = [s.shape for s in nature.manifest.specs if s.name.endswith("kernel")]
    assert nature_kernels[:4] == [(8, 8, 4, 32), (4, 4, 32, 64), (3, 3, 64, 64), (7 * 7 * 64, 512)]
    assert named.encoders["robot/arm"].layers == (Dense(64),)
    assert named.encoders["camera"].shape == (84, 84, 4)
    assert named.layers == (Dense(128), LSTM(128))
    assert (more.shared, more.beside(more.head("value"))) == (("camera", "speed"), ("masses",))
    assert before.encoder_layers.keys() == {"", "previous/action", "previous/reward"}
    assert list(masked.encoders) == ["board"]


def test_every_kind_of_layer_and_every_value_has_its_place_in_the_table():
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE, flags=re.MULTILINE)
    described = {kind: re.findall(r"`(\w+)`(?! ?\))", values) for kind, values in rows}
    assert described == {
        kind: [field.name for field in dataclasses.fields(KINDS[kind])] for kind in KINDS
    }


@pytest.mark.parametrize(
    ("section", "shape"),
    [
        ([{"dense": 4}, {"dense": {"units": 4, "activation": "rleu"}}], (4,)),
        (
            {"encoders": {"camera": [{"conv2d": {"filters": 4, "kernel": 8, "stride": 4}}] * 2}},
            {"camera": (28, 28, 1)},
        ),
        ({"encoders": {"sped": []}}, {"speed": (3,), "camera": (84, 84, 1)}),
    ],
)
def test_every_message_of_the_page_is_said(section, shape):
    (messages,) = blocks("")
    with pytest.raises(ValueError, match="network") as refusal:
        read_network(section, shape, ())
    assert str(refusal.value) in messages.splitlines()


def test_the_code_for_an_algorithm_of_ones_own_runs():
    (code,) = blocks("python")
    names = {"settings": _Settings, "distribution": _Distribution}
    exec(  # noqa: S102 - the page's own code
        "from relaax.learning.networks import *\n"
        "from relaax.learning.shapes import stacked_shape\n" + code,
        names,
    )
    heads = (Head("policy", 2), Head("value", 1))
    assert names["network"] == Network.of((4,), (Dense(128), LSTM(128)), heads)


class _Settings:
    state_size, history_len, network = (4,), 1, None


class _Distribution:
    outputs = 2
