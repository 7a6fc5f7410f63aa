"""Observations of several arrays by name: checked, stacked, kept in rollouts, and chosen for."""

import numpy as np
import pytest
from learning_parts import Driven, Kept

from relaax.acting.actor import Actor
from relaax.acting.agent import SingleAgent
from relaax.acting.preprocessor import Preprocessor
from relaax.algorithm_base import Values, Version
from relaax.errors import InvalidState
from relaax.learning.action_mask import ActionMask
from relaax.learning.distributions import Categorical
from relaax.learning.networks import Head, NetworkParameters, default_network, initial_parameters
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.policy import CurrentPolicy
from relaax.learning.rollouts import Columns, RolloutBatch, RolloutStore
from relaax.learning.shapes import stacked_shape
from relaax.observations import mapped
from relaax.steps import FINAL, START, TRUNCATED, Steps

SIZE = {"camera": (4, 5), "robot/speed": (3,)}
COLUMNS = Columns(
    observation_shape=stacked_shape(SIZE, {"camera": 2}),
    observation_dtype={"camera": np.uint8, "robot/speed": np.float32},
    action_shape=(),
    action_dtype=np.int32,
)


def preprocessor_of(state_size=SIZE, history_len=1, mask=None, environments=3):
    preprocessor = Preprocessor(state_size, history_len, mask)
    preprocessor.grow(environments)
    return preprocessor


def states_of(*numbers):
    """Named arrays of bytes and of floats, filled with a number for each environment."""
    return {
        "camera": np.stack([np.full((4, 5), number, np.uint8) for number in numbers]),
        "robot/speed": np.stack([np.full(3, number, np.float32) for number in numbers]),
    }


def test_each_array_keeps_its_own_type_and_shape():
    checked = preprocessor_of().check(states_of(7, 9))
    assert {name: (part.dtype, part.shape) for name, part in checked.items()} == {
        "camera": (np.uint8, (2, 4, 5, 1)),
        "robot/speed": (np.float32, (2, 3)),
    }


def test_states_of_json_are_mappings_and_may_be_nested():
    """Version 1 sends an object for each environment."""
    sent = [{"robot": {"speed": [n, n, n]}, "camera": np.full((4, 5), n).tolist()} for n in (7, 9)]
    checked, expected = preprocessor_of().check(sent), preprocessor_of().check(states_of(7, 9))
    for name, part in expected.items():
        np.testing.assert_array_equal(checked[name], part)


def test_no_states_are_arrays_of_no_environment():
    for states in ([], mapped(lambda part: part[:0], states_of(1))):
        checked = preprocessor_of().check(states)
        assert {len(part) for part in checked.values()} == {0}
        assert checked["robot/speed"].shape[1:] == (3,)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"robot/speed": np.zeros((1, 4))},
            r"the observation robot/speed has shape \[4\], the configuration says "
            r"state_size: \{robot/speed: \[3\]\}",
        ),
        ({"robot/speed": np.full((1, 3), np.nan)}, "the observation robot/speed has a value that"),
        ({"robot/speed": np.array([["a", "b", "c"]])}, "robot/speed is not an array of numbers"),
        (
            {"camrea": np.zeros((1, 4, 5))},
            "knows no observation camrea, it says state_size: .*; did you mean camera?",
        ),
        (
            {"robot/speed": np.zeros((2, 3), np.float32)},
            "different numbers of environments: 1 of camera, 2 of robot/speed",
        ),
    ],
)
def test_an_array_that_does_not_fit_is_named(change, reason):
    with pytest.raises(InvalidState, match=reason):
        preprocessor_of().check({**states_of(1), **change})


def test_what_is_missing_is_named():
    reason = r"lacks robot/speed, the configuration says state_size: \{camera: \[4, 5\], robot"
    with pytest.raises(InvalidState, match=reason):
        preprocessor_of().check({"camera": states_of(1)["camera"]})
    with pytest.raises(InvalidState, match=reason):
        preprocessor_of().check([{"camera": np.zeros((4, 5))}])


def test_an_array_without_a_name_is_refused_where_names_are_expected_and_the_other_way_round():
    for states in (np.zeros((1, 3), np.float32), [[1, 2, 3]], [5]):
        with pytest.raises(InvalidState, match="has no names; the configuration says state_size"):
            preprocessor_of().check(states)
    with pytest.raises(InvalidState, match=r"has the names camera, robot/speed.*state_size: \[3\]"):
        Preprocessor((3,)).check(states_of(1))


def test_histories_are_kept_by_name():
    preprocessor = preprocessor_of(history_len={"camera": 2})
    slots, starts = np.array([2, 0]), np.array([True, True])
    preprocessor.observe(slots, preprocessor.check(states_of(1, 5)), starts)
    seen = preprocessor.observe(slots, preprocessor.check(states_of(2, 6)), None, rows=4)
    assert seen["camera"][:2, 0, 0].tolist() == [[1, 2], [5, 6]]
    assert seen["robot/speed"].tolist() == [[2] * 3, [6] * 3]
    assert stacked_shape(SIZE, {"camera": 2}) == {"camera": (4, 5, 2), "robot/speed": (3,)}
    assert stacked_shape(SIZE, 3) == {"camera": (4, 5, 3), "robot/speed": (9,)}


def test_a_history_of_what_is_not_observed_is_refused():
    with pytest.raises(ValueError, match="history_len: speed: state_size has no such observation"):
        preprocessor_of(history_len={"speed": 2})


@pytest.mark.parametrize(
    "sent", [np.array([[True, False]]), np.array([[1, 0]], np.int8), np.array([[1.0, 0.0]])]
)
def test_a_mask_of_any_type_becomes_bytes(sent):
    preprocessor = preprocessor_of({"x": (1,)}, mask=ActionMask("legal", 2))
    checked = preprocessor.check({"x": np.zeros((1, 1)), "legal": sent})
    assert checked["legal"].dtype == np.uint8
    assert checked["legal"].tolist() == [[1, 0]]


def test_a_mask_that_leaves_no_action_is_refused_but_one_that_leaves_no_bit_is_not():
    preprocessor = preprocessor_of({"x": (1,)}, mask=ActionMask("legal", 2))
    with pytest.raises(InvalidState, match="mask legal of state 1 of 2 allows no action"):
        preprocessor.check({"x": np.zeros((2, 1)), "legal": np.array([[1, 0], [0, 0]])})
    preprocessor = preprocessor_of({"x": (1,)}, mask=ActionMask("legal", 2, may_forbid_all=True))
    assert not preprocessor.check({"x": np.zeros((1, 1)), "legal": np.zeros((1, 2))})["legal"].any()


def test_a_mask_that_leaves_one_of_several_choices_no_action_is_refused():
    preprocessor = preprocessor_of({"x": (1,)}, mask=ActionMask("legal", 5, nvec=(3, 2)))
    masks = np.array([[0, 1, 0, 0, 1], [1, 1, 1, 0, 0]])
    preprocessor.check({"x": np.zeros((1, 1)), "legal": masks[:1]})
    refusal = r"legal of state 1 of 2 allows no action of choice 1, which has 2.*\[3, 2\] actions"
    with pytest.raises(InvalidState, match=refusal):
        preprocessor.check({"x": np.zeros((2, 1)), "legal": masks})


@pytest.mark.parametrize("number", [-1000.0, -np.inf, 0.5, 255, np.nan])
def test_a_mask_of_other_numbers_than_0_and_1_is_refused(number):
    preprocessor = preprocessor_of({"x": (1,)}, mask=ActionMask("legal", 2))
    with pytest.raises(InvalidState, match=f"the action mask legal holds {number:g}: write 1"):
        preprocessor.check({"x": np.zeros((1, 1)), "legal": np.array([[1, number]])})


def test_a_mask_of_another_size_is_refused():
    preprocessor = preprocessor_of({"x": (1,)}, mask=ActionMask("legal", 2))
    with pytest.raises(InvalidState, match=r"legal has shape \[3\]; an action mask has 2 numbers"):
        preprocessor.check({"x": np.zeros((1, 1)), "legal": np.ones((1, 3))})


def fill(store, steps, slots, number=0):
    for step in range(number, number + steps):
        full = store.observe(slots, kept_states(step, len(slots)), starts=step == 0)
        zeros = np.zeros(len(slots), np.float32)
        store.record(
            slots,
            zeros,
            {"log_probability": zeros},
            np.zeros((2, len(slots), 0), np.float32),
            version=0,
        )
        store.reward(slots, zeros + step, terminated=False)
    return full


def kept_states(number, count):
    return {
        "camera": np.full((count, 4, 5, 2), number, np.uint8),
        "robot/speed": np.full((count, 3), number, np.float32),
    }


def test_rollouts_keep_every_array():
    store = RolloutStore(3, COLUMNS)
    store.grow(2)
    fill(store, 2, np.array([0, 1]))
    store.grow(8)
    rollouts = fill(store, 2, np.array([0, 1]), number=2)
    for name, shape in COLUMNS.observation_shape.items():
        kept = rollouts.observations[name]
        assert kept.dtype == COLUMNS.observation_dtype[name]
        assert kept.shape == (4, 2, *shape)
        assert kept[:, 1].reshape(4, -1)[:, 0].tolist() == [0, 1, 2, 3]
    following = fill(store, 3, np.array([0, 1]), number=4)
    assert following.observations["camera"][:, 0, 0, 0, 0].tolist() == [3, 4, 5, 6]


def test_batches_of_named_arrays_are_cut_in_pieces_and_put_together_again():
    whole = RolloutBatch.zeros(5, 2, COLUMNS)
    whole.observations["robot/speed"][:] = np.arange(5)[:, np.newaxis]
    pieces = whole.pieces(2)
    assert [piece.observations["camera"].shape[1] for piece in pieces] == [2, 2, 1]
    again = RolloutBatch.concatenated(pieces)
    for name, part in whole.observations.items():
        np.testing.assert_array_equal(again.observations[name], part)


def named_actor(kept, most_at_once=128):
    distribution = Categorical(2)
    network = default_network(stacked_shape({"x": (2,), "y": (3,)}, 1), (), (Head("policy", 2),))
    vector = initial_parameters(network.manifest, "orthogonal", 3)
    columns = Columns.of(network, distribution, action_mask=ActionMask("legal", 2))
    return Actor(
        preprocessor=Preprocessor({"x": (2,), "y": (3,)}, 1, ActionMask("legal", 2)),
        policy=CurrentPolicy(
            lambda flat: NetworkParameters(network.manifest.unpack(flat)),
            Values(Version(0), 0, vector),
        ),
        model=NumpyPolicy(network, distribution, action_mask="legal"),
        distribution=distribution,
        columns=columns,
        rollouts=RolloutStore(3, columns),
        experience=kept,
        random=np.random.default_rng(3),
        most_at_once=most_at_once,
    )


def report(slots, flags, numbers, finals=()):
    def states(of):
        of = np.array(of, np.float32).reshape(-1, 1)
        return {
            "x": np.repeat(of, 2, axis=1),
            "y": np.repeat(-of, 3, axis=1),
            "legal": np.concatenate([of % 2 == 0, of % 2 == 1], axis=1),
        }

    rewards = np.zeros(len(slots))
    return Steps(slots, np.array(flags, np.uint8), rewards, states(numbers), states(finals))


def test_an_actor_chooses_what_masks_allow_and_hands_on_what_it_saw():
    kept = Kept()
    actor = Driven(named_actor(kept, most_at_once=3))
    slots = actor.open(4)
    assert actor.act(report(slots, [START] * 4, [0, 1, 2, 3])).tolist() == [0, 1, 0, 1]
    cut = [TRUNCATED | FINAL | START, 0, 0, 0]
    assert actor.act(report(slots, cut, [4, 5, 5, 5], finals=[9])).tolist() == [0, 1, 1, 1]
    assert actor.act(report(slots, [0] * 4, [6, 7, 8, 9])).tolist() == [0, 1, 0, 1]
    assert actor.act(report(slots[1:], [0] * 3, [7, 8, 9])).tolist() == [1, 0, 1]
    first, others = kept.rollouts
    assert first.observations["x"][:, 0, 0].tolist() == [0, 9, 4, 6]
    assert first.observations["legal"].dtype == np.uint8
    assert first.observations["legal"][:, 0].tolist() == [[1, 0], [0, 1], [1, 0], [1, 0]]
    assert first.valid[:, 0].tolist() == [1, 0, 1]
    assert others.observations["y"][:, 2, 0].tolist() == [-3, -5, -9, -9]
    assert (others.extras["log_probability"] == 0).all()  # the only action that is allowed


def test_an_actor_prepares_for_named_observations():
    kept = Kept()
    named_actor(kept).warm_up(4)
    assert kept.is_warm


def test_the_agent_of_one_environment_takes_named_observations():
    agent = SingleAgent(named_actor(Kept()), metrics=None)
    state = {"x": [1, 2], "y": [1, 2, 3], "legal": [0, 1]}
    assert agent.act(state) == 1
    assert agent.reward_and_act(1.0, {**state, "legal": [1, 0]}) == 0
    assert agent.reward_and_reset(2.0) == 3.0
    with pytest.raises(InvalidState, match="lacks legal"):
        agent.act({"x": [1, 2], "y": [1, 2, 3]})
