import numpy as np
import pytest
from replay_cases import SCHEMA, filled, row_of, steps

from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.storage import FINAL
from relaax.replay.views import Episodes, Transitions, Windows, rows_ahead, rows_behind


def test_no_step_is_lost_at_an_episodes_end() -> None:
    """Steps 0 to 6, n = 5: the last four have shorter horizons."""
    storage = filled(steps(0, 7), steps(10, 3))
    rows = np.array([row_of(storage, number) for number in range(7)])
    view = Transitions(steps=5, discount=0.5)

    transitions = view.read(storage, rows)

    assert view.items(storage, rows).all()
    rewards = np.arange(7.0)
    expected = [
        sum(0.5**k * reward for k, reward in enumerate(rewards[first : first + 5]))
        for first in range(7)
    ]
    np.testing.assert_allclose(transitions["return"], expected, rtol=1e-6)
    # Steps 0 and 1 see what follows after five steps; the others, the end of the episode.
    np.testing.assert_allclose(transitions["discount"], [0.5**5, 0.5**5, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(transitions["next_observation"][:2, 0], [5, 6])


def test_an_episode_that_was_cut_off_goes_on_from_its_last_state() -> None:
    storage = filled(steps(0, 3, end=FINAL), steps(20, 2))
    rows = np.array([row_of(storage, number) for number in range(4)])
    view = Transitions(steps=2, discount=0.5)

    assert view.items(storage, rows).tolist() == [True, True, True, False]
    transitions = view.read(storage, rows[:3])

    np.testing.assert_allclose(transitions["return"], [0 + 0.5, 1 + 1, 2])
    np.testing.assert_allclose(transitions["discount"], [0.25, 0.25, 0.5])
    np.testing.assert_array_equal(transitions["next_observation"][:, 0], [2, 3, 3])


def test_frames_are_stacked_when_they_are_read() -> None:
    storage = filled(steps(0, 5), steps(10, 2))
    rows = np.array([row_of(storage, number) for number in (0, 2, 4, 10, 11)])

    transitions = Transitions(stack=3).read(storage, rows)

    assert transitions["observation"].shape == (5, 3, 2)
    np.testing.assert_array_equal(
        transitions["observation"][:, :, 0],
        [[0, 0, 0], [0, 1, 2], [2, 3, 4], [10, 10, 10], [10, 10, 11]],
    )
    np.testing.assert_array_equal(transitions["next_observation"][1, :, 0], [1, 2, 3])


def test_other_columns_are_those_of_the_first_step() -> None:
    storage = filled(steps(0, 5))

    transitions = Transitions(steps=3).read(storage, np.array([row_of(storage, 1)]))

    assert transitions["action"].tolist() == [1]


def test_windows_begin_at_each_stride_of_an_episode() -> None:
    storage = filled(steps(0, 7), steps(10, 4))
    numbers = [0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13]
    rows = np.array([row_of(storage, number) for number in numbers])

    chosen = Windows(length=4, stride=3).items(storage, rows)

    assert [number for number, is_item in zip(numbers, chosen, strict=True) if is_item] == [
        0,
        3,
        6,
        10,
        13,
    ]


def test_a_window_has_burn_in_steps_and_the_state_that_follows() -> None:
    storage = filled(steps(0, 9))
    rows = np.array([row_of(storage, 1), row_of(storage, 4), row_of(storage, 7)])

    window = Windows(length=3, burn_in=2).read(storage, rows)

    np.testing.assert_array_equal(
        window["action"].T, [[0, 0, 1, 2, 3, 4], [2, 3, 4, 5, 6, 7], [5, 6, 7, 8, 8, 8]]
    )
    np.testing.assert_array_equal(
        window["valid"].T, [[0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]]
    )


@pytest.mark.parametrize("length", [0, 1, 30])
def test_rows_ahead_and_behind_stay_within_the_episode(length: int) -> None:
    storage = filled(steps(0, 6), steps(6, 6), steps(12, 6))
    rows = np.array([row_of(storage, number) for number in range(18)])

    ahead, is_ahead = rows_ahead(storage, rows, length)
    behind, is_behind = rows_behind(storage, rows, length)

    numbers = np.arange(18)
    offsets = np.arange(length + 1)[:, np.newaxis]
    last, first = numbers // 6 * 6 + 5, numbers // 6 * 6
    actions = storage.columns["action"]
    np.testing.assert_array_equal(actions[ahead], np.minimum(numbers + offsets, last))
    np.testing.assert_array_equal(is_ahead, numbers + offsets <= last)
    np.testing.assert_array_equal(actions[behind], np.maximum(numbers - offsets[::-1], first))
    np.testing.assert_array_equal(is_behind, numbers - offsets[::-1] >= first)


def test_an_episode_is_an_item_once_it_is_over() -> None:
    spec = ReplaySpec(SCHEMA, 256, {"all": TableSpec(Episodes(longest=4))})
    replay = spec.make(np.random.default_rng(1), 60.0)
    replay.open_writer("w", SCHEMA)
    rows, flags = steps(0, 3)
    replay.append("w", 0, 0, {name: part[:2] for name, part in rows.items()}, flags[:2])
    assert replay.stats()["all/items"] == 0
    replay.append("w", 0, 2, {name: part[2:] for name, part in rows.items()}, flags[2:])
    replay.append("w", 0, 3, *steps(10, 6))  # is cut after four steps
    replay.append("w", 0, 9, *steps(20, 2, end=FINAL))
    assert replay.stats()["all/items"] == 3

    sample = replay.sample("all", 60, 0.0)

    episodes = {
        tuple(sample.columns["action"][:, item].tolist()): (
            sample.columns["valid"][:, item].tolist()
        )
        for item in range(60)
    }
    assert episodes == {
        (0, 1, 2, 2, 2): [True, True, True, False, False],
        (10, 11, 12, 13, 14): [True, True, True, True, True],
        (20, 21, 22, 22, 22): [True, True, False, False, False],
    }


def test_an_episode_that_was_abandoned_before_its_end_has_no_valid_step():
    """Of its longest part, that is: what came after it does not count."""
    storage = filled(steps(0, 3, end=FINAL), steps(10, 3, end=0), steps(20, 5, end=0))
    storage.cut(0)
    rows = np.array([row_of(storage, number) for number in (0, 20)])
    assert Episodes(5).read(storage, rows)["valid"].any(axis=0).tolist() == [True, False]
    assert Episodes(3).read(storage, rows)["valid"][:-1].sum(axis=0).tolist() == [3, 3]
