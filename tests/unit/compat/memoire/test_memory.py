"""Which rollouts a memory draws, and how often."""

import threading

import numpy as np
import pytest
from memoire_entries import ENTRY, NUMBER, memory_of, push, states
from scipy import stats

from relaax.compat.memoire import MemoryClosed, ReplayMemory
from relaax.errors import ConfigurationError
from relaax.replay.replay import NotReady


@pytest.mark.parametrize("pieces", [[6], [3, 3], [1, 1, 4], [5, 1]])
def test_a_rollout_ends_with_the_drawn_entry(pieces):
    memory = memory_of(rollout_len=4)
    begin = 0
    for count in pieces:
        push(memory, range(begin, begin + count), begin + count == 6)
        begin += count
    assert states(memory) == {(2, 3, 4, 5)}


def test_with_padding_the_first_entry_is_repeated():
    memory = memory_of(rollout_len=4, do_padding=True)
    push(memory, [0, 1, 2], is_term=True)
    assert states(memory) == {(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 2)}


def test_too_few_entries_without_padding_are_waited_for():
    memory = memory_of(rollout_len=4)
    push(memory, [0, 1, 2], is_term=True)
    with pytest.raises(NotReady, match="none of the 0 items that are there may be drawn"):
        memory.get_data(1, timeout_s=0)


def test_without_padding_a_rollout_crosses_episodes():
    memory = memory_of(rollout_len=4)
    push(memory, [0, 1, 2], is_term=True)
    push(memory, [10, 11, 12], is_term=True)
    assert states(memory) == {(2, 10, 11, 12)}


def test_a_memory_with_room_keeps_the_whole_episode_before():
    memory = memory_of(max_step=8, rollout_len=4)
    push(memory, [0, 1], is_term=True)
    push(memory, [10, 11], is_term=True)
    assert states(memory) == {(0, 1, 10, 11)}


def test_rollouts_never_cross_slots():
    memory = memory_of(rollout_len=2)
    push(memory, [0, 1, 2], is_term=True, slot=0)
    push(memory, [10, 11], is_term=True, slot=1)
    assert states(memory) == {(0, 1), (1, 2), (10, 11)}


def test_with_padding_whole_episodes_make_room():
    memory = memory_of(max_step=5, do_padding=True)
    for first in (0, 10, 20):
        push(memory, [first, first + 1], is_term=True)
    assert states(memory) == {(10,), (11,), (20,), (21,)}
    assert len(memory) == 4


def test_without_padding_the_oldest_entries_make_room():
    memory = memory_of(max_step=5)
    for first in (0, 10, 20):
        push(memory, [first, first + 1], is_term=True)
    assert states(memory) == {(1,), (10,), (11,), (20,), (21,)}


def test_the_entries_behind_the_write_head_have_no_rollout():
    memory = memory_of(max_step=6, rollout_len=3)
    push(memory, range(6), is_term=False)
    push(memory, [6, 7], is_term=False)
    assert states(memory) == {(2, 3, 4), (3, 4, 5), (4, 5, 6), (5, 6, 7)}


@pytest.mark.parametrize("pads", [True, False])
def test_an_episode_that_is_longer_than_a_slot_loses_its_head(pads: bool):
    memory = memory_of(max_step=4, do_padding=pads)
    push(memory, range(3), is_term=False)
    push(memory, range(3, 10), is_term=True)
    assert states(memory) == {(6,), (7,), (8,), (9,)}


def test_a_slot_keeps_at_most_max_episode_episodes():
    memory = memory_of(max_step=10, max_episode=2)
    for first in (0, 10, 20):
        push(memory, [first, first + 1], is_term=True)
    assert states(memory) == {(10,), (11,), (20,), (21,)}


def test_rollout_len_may_change_over_stored_entries():
    memory = memory_of()
    push(memory, range(4), is_term=False)
    memory.rollout_len = 3
    assert states(memory) == {(0, 1, 2), (1, 2, 3)}
    memory.rollout_len = 1
    assert states(memory) == {(0,), (1,), (2,), (3,)}


def test_frames_are_stacked_within_an_episode():
    memory = memory_of(max_step=8, frame_stack=3)
    push(memory, [0, 1], is_term=True)
    push(memory, [10, 11, 12], is_term=False)
    assert states(memory) == {(0, 0, 0), (0, 0, 1), (10, 10, 10), (10, 10, 11), (10, 11, 12)}
    fields, _ = memory.get_data(5)
    assert [field.shape for field in fields] == [(5, 1, 3), *[(5, 1)] * 4]


def test_a_stack_is_not_drawn_without_the_frames_that_its_episode_had():
    memory = memory_of(max_step=4, frame_stack=3)
    push(memory, range(6), is_term=False)
    assert states(memory) == {(2, 3, 4), (3, 4, 5)}


def test_pairs_lie_multi_step_apart_and_wait_for_what_follows():
    memory = memory_of(max_step=8, multi_step=2)
    push(memory, range(4), is_term=False)
    (before, after, weights) = memory.get_data(100)
    pairs = set(zip(before[0][:, 0].tolist(), after[0][:, 0].tolist(), strict=True))
    assert pairs == {(0, 2), (1, 3)}
    assert weights.shape == (100,)


def test_the_pairs_at_an_episodes_end_are_shorter():
    memory = memory_of(max_step=8, multi_step=2)
    push(memory, range(4), is_term=False)
    push(memory, [4], is_term=True)
    push(memory, [10], is_term=False)
    (before, after, _) = memory.get_data(200)
    pairs = set(zip(before[0][:, 0].tolist(), after[0][:, 0].tolist(), strict=True))
    assert pairs == {(0, 2), (1, 3), (2, 4), (3, 4), (4, 4)}


def test_an_episode_that_is_cut_off_bootstraps_from_its_last_value():
    memory = memory_of(max_step=8, mix_lambda=1.0)
    push(memory, [0, 1], is_term=False, values=[0.5, 0.25])
    push(memory, [10], is_term=True, values=[7.0], starts=True)
    fields, _ = memory.get_data(100)
    returns = dict(zip(fields[0][:, 0].tolist(), fields[-1][:, 0].tolist(), strict=True))
    assert returns == {0: 1.25, 1: 0.25, 10: 1.0}


def test_entries_are_drawn_as_often_as_their_weights_say():
    memory = memory_of(max_step=16, n_slot=2, priority_exponent=0.7, discount_factor=[0.8])
    generator = np.random.default_rng(3)
    for slot, count in ((0, 12), (1, 6)):
        rewards, values = generator.normal(size=(2, count))
        push(
            memory, range(100 * slot, 100 * slot + count), True, slot, rewards=rewards,
            values=values,
        )  # fmt: skip
    sample = memory.sample(20_000)

    numbers = sample.columns["entry[0]"][:, 0]
    found, first, counts = np.unique(numbers, return_index=True, return_counts=True)
    expected = sample.probabilities[first] * 20_000
    assert len(found) == 18
    assert expected.sum() == pytest.approx(20_000)
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    # A slot is drawn by the sum of its weights, however many entries it has.
    is_first = found < 100
    slots = [counts[is_first].sum(), counts[~is_first].sum()]
    of_slots = [expected[is_first].sum(), expected[~is_first].sum()]
    assert stats.chisquare(slots, of_slots).pvalue > 1e-3


def test_a_sample_says_how_probable_each_entry_was():
    memory = memory_of(max_step=8, priority_exponent=1.0)
    push(memory, range(3), is_term=True, rewards=[0, 0, 3], values=[1, 1, 1])
    sample = memory.sample(50)
    weights = sample.columns["weight"]
    np.testing.assert_allclose(sample.probabilities, weights / memory.total_weight, rtol=1e-6)
    assert sample.items == 3
    assert sample.least_probability == pytest.approx(sample.probabilities.min())


def test_weights_are_found_as_entries_arrive():
    memory = memory_of(
        max_step=8, priority_exponent=0.6, discount_factor=[0.9], mix_lambda=0.5, rollout_len=1
    )
    push(memory, range(3), True, rewards=[1, 1, 1], values=[0.5, 0.4, 0.3])
    fields, weights = memory.get_data(100)
    found = dict(zip(fields[0][:, 0].tolist(), weights.tolist(), strict=True))
    assert found == pytest.approx({0: 1.502195, 1: 1.363139, 2: 0.993958}, abs=5e-7)


def test_the_newest_entry_of_an_unfinished_episode_has_no_error_yet():
    memory = memory_of(max_step=8, priority_exponent=0.5)
    push(memory, range(3), is_term=False)
    assert states(memory) == {(0,), (1,)}
    push(memory, [3], is_term=True)
    assert states(memory) == {(0,), (1,), (2,), (3,)}


def test_a_decay_of_0_draws_each_entry_once():
    memory = memory_of(max_step=16, priority_decay=0.0)
    push(memory, range(10), is_term=False)
    fields, _ = memory.get_data(7)
    others, _ = memory.get_data(3)
    drawn = [*fields[0][:, 0].tolist(), *others[0][:, 0].tolist()]
    assert sorted(drawn) == list(range(10))
    with pytest.raises(NotReady):
        memory.get_data(1, timeout_s=0)


def test_a_decay_of_0_waits_for_as_many_entries_as_are_drawn():
    memory = memory_of(max_step=16, priority_decay=0.0)
    push(memory, range(3), is_term=False)
    with pytest.raises(NotReady, match="3 of the 4 items of a batch are complete"):
        memory.get_data(4, timeout_s=0)


def test_a_later_push_of_the_same_episode_undoes_the_decay():
    memory = memory_of(max_step=8, priority_decay=0.0, priority_exponent=1.0)
    push(memory, [0, 1], is_term=False)
    assert memory.get_data(1)[0][0].item() == 0
    push(memory, [2], is_term=True)
    assert memory.get_data(3)[0][0].shape == (3, 1)


def test_a_draw_waits_for_entries():
    memory = memory_of()
    drawn = []
    thread = threading.Thread(target=lambda: drawn.append(memory.get_data(2, timeout_s=30)))
    thread.start()
    push(memory, [5], is_term=True)
    thread.join(30)
    assert drawn[0][0][0].tolist() == [[5], [5]]


def test_a_draw_that_waits_ends_when_the_memory_is_closed():
    memory = memory_of()
    memory.close()
    with pytest.raises(MemoryClosed):
        memory.get_data(1)


def test_the_readable_properties_are_those_of_the_seed():
    state, reward = np.zeros((2, 3), np.uint8), np.zeros(2, np.float32)
    memory = ReplayMemory((state, reward, NUMBER, reward), 10, 3)
    assert memory.reward_buf.shape == memory.value_buf.shape == memory.qvest_buf.shape == (2,)
    assert memory.prob_buf.shape == ()
    assert (memory.num_slot, memory.max_step) == (3, 10)
    assert memory.entry_size == 6 + 8 + 4 + 8 + 8
    assert memory.uuid != ReplayMemory(ENTRY, 1, 1).uuid
    assert memory.discount_factor == memory.reward_coeff == [1.0, 1.0]
    assert (memory.priority_exponent, memory.mix_lambda, memory.rollout_len) == (0, 1, 1)
    assert (memory.do_padding, memory.priority_decay) == (False, 1)
    assert (memory.traceback_threshold, memory.ma_sqa) == (1e-4, 1)


def test_entries_without_values_are_drawn_alike():
    memory = ReplayMemory((NUMBER, NUMBER, NUMBER, np.zeros(0, np.float32)), 8, 1)
    memory.priority_exponent = 0.6
    push(memory, range(3), is_term=False, values=np.zeros((3, 0)))
    fields, weights = memory.get_data(50)
    assert set(fields[0][:, 0].tolist()) == {0, 1, 2}
    assert set(weights.tolist()) == {1}
    assert fields[-1].shape == (50, 1, 0)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rollout_len", 5, "rollout_len must be at most max_step, which is 4, is 5"),
        ("rollout_len", 0, "rollout_len must be from 1 to inf, is 0"),
        ("mix_lambda", 1.5, "mix_lambda must be from 0 to 1, is 1.5"),
        ("priority_exponent", float("nan"), "priority_exponent must be from 0 to inf, is nan"),
        ("discount_factor", [0.9, 0.9], "discount_factor must be 1 finite numbers"),
        ("reward_coeff", [], "reward_coeff must be 1 finite numbers"),
    ],
)
def test_a_wrong_setting_is_refused(name, value, message):
    with pytest.raises(ConfigurationError, match=message):
        setattr(memory_of(), name, value)


def test_a_mistyped_setting_and_a_property_that_never_changes_are_not_set():
    with pytest.raises(AttributeError, match="rolout_len"):
        memory_of().rolout_len = 4
    with pytest.raises(AttributeError, match="max_step"):
        memory_of().max_step = 4


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ([NUMBER] * 3, "this one has 3 fields"),
        ((NUMBER, np.zeros([]), NUMBER, NUMBER), "reward must be of float32, is of float64"),
        ((NUMBER, NUMBER, np.zeros(2, np.float32), NUMBER), "prob must be a number"),
        ((NUMBER, NUMBER, NUMBER, np.zeros(2, np.float32)), "value must have the reward's shape"),
        ((NUMBER, np.zeros((2, 2), np.float32), NUMBER, NUMBER), "reward must be a number or a"),
    ],
)
def test_a_wrong_entry_is_refused(entry, message):
    with pytest.raises(ConfigurationError, match=message):
        ReplayMemory(entry, 4, 1)


def test_entries_of_another_kind_are_refused_by_name():
    memory = memory_of()
    with pytest.raises(ValueError, match=r"'reward' is float32 \[2\], and must be float32 \[\]"):
        push(memory, [1], is_term=True, rewards=np.ones((1, 2)))
    assert len(memory) == 0
