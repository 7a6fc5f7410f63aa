"""Observations by name, as programs hand them to clients."""

import numpy as np
import pytest

from relaax.client import Client, Steps, VectorClient
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED

CAMERA = np.arange(4, dtype=np.uint8).reshape(2, 2)


def robot(angle=0.5):
    return {"camera": CAMERA, "arm": {"angle": [angle], "gears": (1, np.float32(2))}}


def robots(count):
    return {
        "camera": np.stack([CAMERA] * count),
        "arm": {"angle": np.full((count, 1), 0.5, np.float32), "gears": ([1] * count, [2] * count)},
    }


def flags(*values):
    return np.array(values, np.uint8)


NAMES = ["camera", "arm/angle", "arm/gears/0", "arm/gears/1"]


class TestOneEnvironment:
    def test_a_dict_arrives_as_arrays_by_flat_names(self, server):
        with Client(server.url) as client:
            assert client.init(robot()) == 1
            assert client.send(1.0, robot(0.75)) == 1
            client.truncate(1.0, robot(1.0))
        first, second, last = server.steps
        assert list(first.observations) == NAMES
        assert first.observations["camera"].dtype == np.uint8
        assert [array.shape for array in first.observations.values()] == [
            (1, 2, 2),
            (1, 1),
            (1,),
            (1,),
        ]
        assert second.observations["arm/angle"].tolist() == [[0.75]]
        assert second.observations["arm/gears/1"].dtype == np.float32
        assert last.finals["arm/angle"].tolist() == [[1.0]]

    def test_the_hello_announces_a_dict(self, server):
        with Client(server.url) as client:
            client.init(robot())
        space = server.hellos[0].observation_space
        assert (space["type"], list(space["spaces"])) == ("Dict", NAMES)
        assert space["spaces"]["camera"] == {"type": "Box", "dtype": "uint8", "shape": [2, 2]}
        assert space["spaces"]["arm/gears/0"]["shape"] == []

    @pytest.mark.parametrize(
        ("state", "error", "message"),
        [
            ({"a": {"b": np.array([1, np.nan])}}, ValueError, r"the state\['a/b'\]\[1\] is nan"),
            ({"a": "left"}, TypeError, r"the state\['a'\] is no array of numbers: str"),
            ({"a": {"b": 1}, "a/b": 2}, ValueError, "two observations are named 'a/b'"),
            ({"": 1}, ValueError, "the name of an observation is a text, not ''"),
            ({None: 1}, ValueError, "the name of an observation is a text, not None"),
            ({"x" * 256: 1}, ValueError, "at most 255 bytes"),
            ({"\ud800": 1}, ValueError, "no Unicode"),
            ({str(n): n for n in range(256)}, ValueError, "1 to 255 arrays by name, not 256"),
            ({}, ValueError, "1 to 255 arrays by name, not 0"),
        ],
    )
    def test_what_cannot_be_sent_is_named_where_it_is_handed_over(
        self, server, state, error, message
    ):
        with Client(server.url, protocol=2) as client:
            client.init(robot())
            with pytest.raises(error, match=message):
                client.send(1.0, state)
            with pytest.raises(error, match=message):
                client.truncate(1.0, state)
            assert client.send(1.0, robot()) == 1

    def test_version_1_carries_a_json_object(self, start_server):
        server = start_server()
        with Client(server.url, protocol=1) as client:
            client.init({"arm": {"angle": np.float32([0.5])}, "speed": 3})
        assert server.exchanges[0].state == {"arm/angle": [0.5], "speed": 3}

    def test_a_dict_with_more_than_numbers_is_sent_in_version_1_as_it_is(self, start_server):
        server = start_server()
        with Client(server.url, protocol=1) as client:
            client.init({"word": "left", "arm": {"angle": 1}})
        assert server.exchanges[0].state == {"word": "left", "arm": {"angle": 1}}
        assert server.hellos == 0


class TestManyEnvironments:
    def test_dicts_arrive_as_arrays_by_flat_names(self, server):
        with VectorClient(server.url, 2) as client:
            client.init(robots(2))
            client.send(np.ones(2), robots(2))
            client.send(np.ones(2), robots(2), [True, False], [False, True], robots(1))
            ended = Steps([1], flags(TRUNCATED | FINAL), [1.0], (), robots(1))
            client.exchange(ended)
            client.exchange(Steps([1, 0], flags(START, TERMINATED), [0, 1], robots(1), ()))
        assert all(list(steps.observations) == NAMES for steps in server.steps[:3])
        assert server.steps[2].flags.tolist() == [TERMINATED | START, TRUNCATED | FINAL | START]
        assert server.steps[2].finals["camera"].tolist() == [CAMERA.tolist()]
        assert server.steps[3].finals["arm/gears/1"].tolist() == [2]
        assert server.steps[4].observations["camera"].shape == (1, 2, 2)
        (hello,) = server.hellos
        assert list(hello.observation_space["spaces"]) == NAMES
        assert hello.observation_space["spaces"]["arm/angle"]["shape"] == [1]

    def test_arrays_may_be_filled_again(self, server):
        states = {"x": np.zeros((2, 1))}
        with VectorClient(server.url, 2) as client:
            client.init(states)
            for step in range(1, 4):
                states["x"][:] = step
                client.send(np.ones(2), states)
        seen = [steps.observations["x"].ravel().tolist() for steps in server.steps]
        assert seen == [[0, 0], [1, 1], [2, 2], [3, 3]]

    @pytest.mark.parametrize(
        ("observations", "message"),
        [
            ({"a": np.zeros((3, 1))}, r"observations\['a'\] are 2 rows, not an array of shape"),
            ({"a": {"b": [[0], [np.inf]]}}, r"observations\['a/b'\]\[1, 0\] is inf"),
            ({"a": np.zeros(2), "b": "no"}, r"observations\['b'\] are no array of numbers: str"),
            ({"a": np.zeros(2), "b": 1.0}, r"observations\['b'\] are 2 rows"),
            ({}, "1 to 255 arrays by name"),
        ],
    )
    def test_what_cannot_be_sent_is_named_where_it_is_handed_over(
        self, server, observations, message
    ):
        with VectorClient(server.url, 2) as client:
            with pytest.raises(ValueError, match=message):
                client.init(observations)
            assert server.accepted == 0
            client.init(robots(2))
            with pytest.raises(ValueError, match=message):
                client.send(np.ones(2), observations)
            ends = np.ones(2, np.bool_)
            with pytest.raises(ValueError, match=message.replace("observations", "finals", 1)):
                client.send(np.ones(2), robots(2), None, ends, observations)
