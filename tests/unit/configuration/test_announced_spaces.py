"""What is said of an environment whose spaces are others than the configuration's."""

import logging
import os

import numpy as np
import pytest
from processes import REPOSITORY

from relaax.algorithm_base import ConfigBase
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.configuration.announced_spaces import AnnouncedSpaces, Doubts
from relaax.spaces import box, discrete


class Wanted(ConfigBase):
    """The spaces of a configuration."""

    def __init__(self, actions, observations=None):
        super().__init__({})
        self._spaces = observations, actions

    def observation_space(self):
        return self._spaces[0]

    def action_space(self):
        return self._spaces[1]


def bounded(low, high, shape=(1,)):
    return {**box("float32", shape), "low": low, "high": high}


def misfit(announced, wanted):
    return AnnouncedSpaces("Valve", None, announced).misfit(Wanted(wanted))


def doubts(announced, wanted):
    spaces = AnnouncedSpaces("Valve", None, announced)
    return [text for _, text in spaces.doubts(Wanted(wanted))]


def test_other_bounds_are_refused_with_both_and_what_to_write():
    assert misfit(bounded(0, 10), bounded(-1, 1)) == (
        'the actions of Valve are {"type": "Box", "dtype": "float32", "shape": [1], "low": 0, '
        '"high": 10}, action_size in the algorithm section asks for {"type": "Box", "dtype": '
        '"float32", "shape": [1], "low": -1, "high": 1}; write action_low: 0 and action_high: 10 '
        "there, or let the client convert them"
    )


@pytest.mark.parametrize(
    ("announced", "keys"),
    [
        (bounded([0, 0.1], [1, 2], (2,)), "action_low: [0, 0.1] and action_high: [1, 2]"),
        (bounded([[0], [-1]], 2, (2, 1)), "action_low: [[0], [-1]] and action_high: 2"),
        (bounded(None, 2, (2,)), "action_high: 2"),
        (bounded([None, -3], None, (2,)), "action_low: [-.inf, -3]"),
    ],
)
def test_bounds_are_written_as_yaml_has_them(announced, keys):
    wanted = bounded(-9, 9, tuple(announced["shape"]))
    assert f"; write {keys} there, " in misfit(announced, wanted)


@pytest.mark.parametrize("algorithm", ["da3c_cont", "ppo", "sac", "ddpg"])
def test_every_algorithm_of_continuous_actions_tells_its_bounds(algorithm):
    module = load_algorithm(REPOSITORY / "algorithms" / algorithm).module
    kind = {"continuous": True} if algorithm == "ppo" else {}
    sizes = {"state_size": [3], "action_size": 2, "hidden_layers": [8]}
    config = module.Config({**sizes, **kind, "action_low": -1, "action_high": [1, 0.1]})
    for low, high, fits in (
        (-1, [1, 0.1], True), (-1, [1, float(np.float32(0.1))], True), (0, 10, False)
    ):  # fmt: skip
        spaces = AnnouncedSpaces("", None, bounded(low, high, (2,)))
        assert (spaces.misfit(config) is None) is fits
        assert list(spaces.doubts(config)) == []


def test_choices_that_begin_elsewhere_are_the_client_s_to_convert():
    why = misfit({**discrete(3), "start": 1}, discrete(3))
    assert why.endswith(
        "; actions are counted from 0: let the client convert them, and announce no other start"
    )


def test_bounds_that_are_none_are_named():
    why = misfit(bounded("low", 1), bounded(-1, 1))
    assert why.endswith("; low must be one number, or lists of numbers of shape [1]")


def test_bounds_of_the_environment_that_the_configuration_lacks_are_doubtful():
    (doubt,) = doubts(bounded(-2, 2), box("float32", (1,)))
    assert doubt == (
        "Valve takes actions within bounds, and the algorithm section names none: actions beyond "
        "them are cut off on their way, which learning does not see; write action_low: -2 and "
        "action_high: 2 there"
    )


def test_what_is_assumed_of_a_client_that_announces_nothing_is_said():
    (doubt,) = doubts(None, bounded(-1, 1))
    assert doubt.startswith("Valve announces no action space, as no client of version 1 ")
    assert 'it is taken to act in {"type": "Box", "dtype": "float32", ' in doubt
    (doubt,) = doubts(box("float32", (1,)), bounded(-1, 1))
    assert doubt.startswith(
        "Valve announces no bounds of its actions: they are taken to be action_low: -1 and "
        "action_high: 1;"
    )


def test_that_an_environment_takes_whole_numbers_is_said():
    (doubt,) = doubts({**bounded(0, 9), "dtype": "int64"}, bounded(0, 9))
    assert doubt == "Valve takes whole numbers: each number of an action is rounded"


@pytest.mark.parametrize(
    ("announced", "wanted"),
    [
        (bounded(-1, 1), bounded(-1, 1)),
        (bounded(None, None), bounded(-1, 1)),
        (bounded(None, None), box("float32", (1,))),
        ({**bounded(-1, 1), "dtype": "none"}, bounded(-1, 1)),
        (discrete(3), discrete(3)),
        (None, None),
        (bounded(-1, 1), None),
    ],
)
def test_nothing_is_doubtful_where_nothing_is_assumed(announced, wanted):
    assert misfit(announced, wanted) is None
    assert doubts(announced, wanted) == []


def test_each_doubt_is_said_once_by_all_workers_of_a_server(caplog):
    said = Doubts(logging.getLogger("relaax"))
    silent, wide = AnnouncedSpaces("", None, None), AnnouncedSpaces("", None, bounded(-2, 2))
    if (worker := os.fork()) == 0:
        said.note(silent, Wanted(bounded(-1, 1)))
        os._exit(0)
    os.waitpid(worker, 0)
    for _ in range(2):
        said.note(silent, Wanted(bounded(-1, 1)))
        said.note(wide, Wanted(box("float32", (1,))))
    (line,) = caplog.messages
    assert line.startswith("doubtful: a client takes actions within bounds")


def seen(observations, scales=False):
    """What is said of the observations of an environment."""
    config = Wanted(None)
    config.scales_states = lambda: scales
    return [text for _, text in AnnouncedSpaces("Valve", observations, None).doubts(config)]


def test_an_image_with_its_channels_first_is_doubtful():
    (text,) = seen(box("uint8", (3, 84, 96)))
    assert "has shape [3, 84, 96]: if that is an image with its channels first, transpose" in text


@pytest.mark.parametrize("shape", [(84, 84, 3), (4, 4, 3), (3, 3, 3), (3, 84), (8, 84, 84)])
def test_other_shapes_are_not_doubtful(shape):
    assert seen(box("uint8", shape)) == []


def test_bytes_up_to_one_and_other_numbers_up_to_255_are_doubtful_in_images():
    (fractions,) = seen({**box("uint8", (8, 8)), "low": 0, "high": 1})
    assert "bytes up to 1, which are divided by 255" in fractions
    for dtype in ("float32", "int32", "uint16"):
        (large,) = seen({**box(dtype, (8, 8)), "low": 0, "high": 255})
        assert f"of {dtype}, is of numbers up to 255, which stay as they are" in large


@pytest.mark.parametrize(("dtype", "high"), [("uint8", 255), ("float32", 1), ("float32", None)])
def test_images_of_the_usual_range_are_not_doubtful(dtype, high):
    assert seen({**box(dtype, (8, 8)), "low": 0, "high": high}) == []


def test_numbers_whose_bounds_span_nine_decades_are_doubtful_unless_they_are_filtered():
    wide = {**bounded([0, 0], [1e7, 1e-3], (2,))}
    nested = {"type": "Dict", "spaces": {"arm": wide}}
    (text,) = seen(nested)
    assert text.startswith("numbers in the observation of 'arm' of Valve have sizes from 0.001 to")
    assert "write filter_states: true" in text
    assert seen(nested, scales=True) == []
    assert seen(bounded([0, 0], [1e7, None], (2,))) == []
