"""Damaged contents of a replay are refused with the array and the row; what is not, goes on."""

import json

import numpy as np
import pytest
from replay_cases import SCHEMA, steps

from relaax.errors import ConfigurationError, DamagedCheckpoint
from relaax.replay.replay import NotReady
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.storage import FINAL, NONE
from relaax.replay.views import Rollouts, Transitions, Windows

CAPACITY = 256

TABLES = {
    "uniform": TableSpec(Transitions(3, 0.9)),
    "prioritized": TableSpec(Transitions(stack=2), "prioritized", alpha=0.5),
    "queue": TableSpec(Windows(2), "fifo"),
    "rollouts": TableSpec(Rollouts(4), "fifo"),
    "twice": TableSpec(Transitions(), max_times_sampled=2),
}

#: The tables with items of their own, and arrays of tables.
DRAWN = ("uniform", "prioritized", "queue", "rollouts", "twice")
ITEMS = "table/{}/selector/rows"
PRIORITIES = "table/prioritized/selector/priorities"
LARGEST = "table/prioritized/selector/largest"


def made():
    return ReplaySpec(SCHEMA, CAPACITY, TABLES).make(np.random.default_rng(5), 60.0)


def filled():
    """A replay whose pool is full, with two writers, one of them in the middle of an episode."""
    replay = made()
    for writer in ("w", "v"):
        replay.open_writer(writer, SCHEMA)
    numbers = {"w": 0, "v": 0}
    for part in range(40):
        writer = "wv"[part % 2]
        rows, flags = steps(numbers[writer], 12, end=FINAL if part < 38 else 0)
        numbers[writer] = replay.append(writer, part % 2, numbers[writer], rows, flags)
    keys = replay.sample("prioritized", 16, 0.0).keys
    replay.update_priorities("prioritized", keys, np.arange(16) / 4)
    replay.sample("twice", 16, 0.0)
    return replay


@pytest.fixture(name="saved", scope="module")
def _saved():
    contents = filled().contents()
    for array in contents.values():
        array.flags.writeable = False
    return contents


def spoilt(saved, name, change):
    """The contents with a copy of one array, in which ``change`` has changed something."""
    array = saved[name].copy()
    changed = change(array)
    return {**saved, name: array if changed is None else changed}


def put(index, value):
    def change(array):
        array[index] = value

    return change


def refusal(contents):
    replay = made()
    before = replay.contents()
    with pytest.raises(DamagedCheckpoint) as refused:
        replay.restore(contents)
    after = replay.contents()
    assert all(np.array_equal(after[name], before[name]) for name in before)
    return str(refused.value)


def go_on(replay):
    """Evict all that was restored, and draw what there is meanwhile."""
    replay.open_writer("new", SCHEMA)
    first = 0
    for part in range(30):
        for table in TABLES:
            try:
                keys = replay.sample(table, 2, 0.0).keys
            except NotReady:
                continue
            if table == "prioritized":
                replay.update_priorities(table, keys, np.full(len(keys), 0.5))
        rows, flags = steps(first, 12, end=FINAL if part % 3 else 0)
        first = replay.append("new", 0, first, rows, flags)
    for writer in ("w", "v", "new"):
        replay.close_writer(writer)
    return replay.contents()


def test_saved_contents_are_sound_and_so_are_those_of_a_restored_replay(saved):
    replay = made()
    replay.restore(saved)
    made().restore(go_on(replay))  # which refuses what is not sound


def test_contents_of_an_empty_replay_are_sound():
    replay = made()
    replay.restore(made().contents())
    assert len(replay) == 0


def test_each_array_that_is_missing_is_named(saved):
    for name in saved.keys() - {"changes"}:
        found = refusal({each: array for each, array in saved.items() if each != name})
        assert found == f"{name} is missing", name


def test_each_array_of_another_shape_or_type_is_named(saved):
    for name, array in saved.items():
        other = np.zeros((*array.shape, 2), array.dtype)
        assert f"{name} is {array.dtype} " in refusal({**saved, name: other}), name
        other = array.astype(np.float16 if array.dtype != np.float16 else np.float32)
        assert f"{name} is float16 " in refusal({**saved, name: other}), name


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", ["observation", "reward"])
def test_a_value_that_is_not_finite_is_named_with_its_column_and_place(saved, column, value):
    name = f"storage/column/{column}"
    for index in (0, 17, len(saved["storage/rows"]) - 1):
        place = (index, ...) if column == "reward" else (index, 1)
        found = refusal(spoilt(saved, name, put(place, value)))
        assert found.startswith(f"{name} is ")
        assert found.endswith(f" at place {index}, and must be finite")


def test_a_column_that_is_not_known_is_named(saved):
    count = len(saved["storage/rows"])
    found = refusal({**saved, "storage/column/other": np.zeros(count)})
    assert found == "storage/column/other is a column that is not known"


def test_an_item_of_a_free_row_is_named():
    replay = made()
    replay.open_writer("w", SCHEMA)
    replay.append("w", 0, 0, *steps(0, 12))
    contents = replay.contents()
    for name in ("table/uniform/selector/rows", "table/uniform/waiting"):
        found = refusal({**contents, name: np.array([200])})
        assert found == f"{name} is 200 at place 0, and must be a row that was saved"


def test_items_are_as_many_as_their_priorities(saved):
    count = len(saved[PRIORITIES])
    found = refusal({**saved, PRIORITIES: saved[PRIORITIES][:-1]})
    assert found == f"{PRIORITIES} is float64 [{count - 1}], and must be float64 [{count}]"


@pytest.mark.parametrize(
    ("name", "index", "value", "rule"),
    [
        ("storage/rows", 3, -1, "a row below 256"),
        ("storage/rows", 3, CAPACITY, "a row below 256"),
        ("storage/rows", 3, lambda rows: rows[4], "there once"),
        ("storage/flags", 3, 8, "a flag"),
        ("storage/serials", 3, -1, "from 0 to "),
        ("storage/serials", 3, 2**62, "from 0 to "),
        ("storage/serials", 3, lambda serials: serials[4], "and there once"),
        ("storage/positions", 3, -5, "at least 0"),
        ("storage/numbers", 3, -5, "at least 0"),
        ("storage/slots", 3, -5, "at least 0"),
        ("storage/following", 3, -2, "-1, or a row that was saved"),
        ("storage/following", 3, CAPACITY, "-1, or a row that was saved"),
        ("storage/following", 3, lambda rows: rows[7], "a row of its slot that names this one"),
        ("storage/before", 3, CAPACITY, "-1, or a row that was saved"),
        ("storage/ages", 0, np.nan, "finite"),
        ("storage/ages", 0, np.inf, "finite"),
        ("storage/counts", 0, -1, "from 0 to "),
        ("storage/counts", 1, 0, ", or rows are missing"),
        ("table/uniform/counts", 2, -3, "from 0 to "),
        ("table/twice/times", 9, -1, "from 0 to "),
        ("counts", 3, -1, "from 0 to "),
        ("changes", (), -1, "at least 0"),
        *((ITEMS.format(each), 0, -1, "a row below 256") for each in DRAWN),
        *((ITEMS.format(each), 0, CAPACITY, "a row below 256") for each in DRAWN),
        *((ITEMS.format(each), 0, lambda rows: rows[1], "there once") for each in DRAWN),
        *((PRIORITIES, 3, value, "finite, and at least 0") for value in (np.nan, np.inf, -0.5)),
        (PRIORITIES, slice(3, 5), 1.7e308, "less, or their sum is not finite"),
        *((LARGEST, 0, value, "finite, and at least 1") for value in (np.nan, np.inf, 0.0)),
    ],
)  # fmt: skip
def test_a_number_that_cannot_be_is_named_with_its_place(saved, name, index, value, rule):
    number = value(saved[name]) if callable(value) else value
    found = refusal(spoilt(saved, name, put(index, number)))
    assert found.startswith(f"{name} is ")
    assert " at place " in found
    assert rule in found


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("numbers", 77_777, "the next row of its slot"),
        ("slots", 1_000, "a row of its slot that names this one"),
        ("serials", lambda serials: serials.min() - 1, "the next row of its slot"),
        ("following", NONE, "a row of its slot that names this one"),
        ("before", NONE, "a row of its slot that names this one"),
        ("before", lambda rows: rows[7], "a row of its slot that names this one"),
    ],
)
def test_a_row_that_does_not_fit_its_neighbours_is_named(saved, name, value, rule):
    number = value(saved[f"storage/{name}"]) if callable(value) else value
    found = refusal(spoilt(saved, f"storage/{name}", put(3, number)))
    assert found.startswith(("storage/following is ", "storage/before is "))
    assert found.endswith(f"must be {rule}")


def as_bytes(value):
    text = value if isinstance(value, str) else json.dumps(value)
    return np.frombuffer(text.encode(), np.uint8)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "is no list of writers"),
        ("[" * 100_000, "is no list of writers"),
        ([], "is no list of writers"),
        ({"slots": 2}, "is no list of writers"),
        ({"slots": 9, "writers": {"w": [[0, 0]]}}, "is no list of writers"),
        ({"slots": 9, "writers": {"w": 5}}, "is no list of writers"),
        ({"slots": "9", "writers": {}}, "has slots that there are not"),
        ({"slots": -1, "writers": {}}, "has slots that there are not"),
        ({"slots": 2**63, "writers": {}}, "has slots that there are not"),
        ({"slots": 9, "writers": {"w": [[0, 9, 0]]}}, "has slots that there are not"),
        ({"slots": 9, "writers": {"w": [[0, 1, -1]]}}, "has slots that there are not"),
        ({"slots": 9, "writers": {"w": [[0, 1.5, 0]]}}, "has slots that there are not"),
        (
            {"slots": 9, "writers": {"w": [[0, 1, 0]], "v": [[0, 1, 0]]}},
            "has a slot of two environments",
        ),
    ],
)
def test_writers_that_cannot_be_are_an_error(saved, value, reason):
    assert f"writers {reason}" in refusal({**saved, "writers": as_bytes(value)})


def test_a_row_of_a_slot_that_no_writer_had_is_named(saved):
    found = refusal({**saved, "writers": as_bytes({"slots": 0, "writers": {}})})
    assert found.startswith("storage/slots is ")
    assert found.endswith("and must be below 0")


def test_whatever_number_is_changed_is_refused_or_harmless(saved):
    """What passes goes on until all of it is evicted, without an error."""
    random = np.random.default_rng(7)
    names = [name for name, array in saved.items() if array.size and array.dtype.kind == "i"]
    refused = 0
    for _ in range(60):
        name = names[random.integers(len(names))]
        near = random.integers(-3, CAPACITY + 3)
        value = random.choice([near, -(2**63), 2**63 - 1, 2**31])
        contents = spoilt(saved, name, lambda array, to=value: array.put(array.size // 2, to))
        replay = made()
        try:
            replay.restore(contents)
        except DamagedCheckpoint:
            refused += 1
        else:
            go_on(replay)
    assert 10 < refused < 60


@pytest.mark.parametrize(("before", "now"), [(None, 2), (2, None), (2, 5)])
def test_how_often_an_item_may_be_drawn_may_be_changed(before, now):
    def replay_of(most):
        tables = {"twice": TableSpec(Transitions(), max_times_sampled=most)}
        return ReplaySpec(SCHEMA, CAPACITY, tables).make(np.random.default_rng(5), 60.0)

    replay = replay_of(before)
    replay.open_writer("w", SCHEMA)
    replay.append("w", 0, 0, *steps(0, 12))
    replay.sample("twice", 3, 0.0)
    again = replay_of(now)
    again.restore(replay.contents())
    assert again.table_sizes() == replay.table_sizes()
    again.sample("twice", 8, 0.0)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"alpha": -0.1}, "alpha must be finite, and at least 0, is -0.1"),
        ({"alpha": np.nan}, "alpha must be finite, and at least 0, is nan"),
        ({"max_times_sampled": 0}, "max_times_sampled must be at least 1, is 0"),
    ],
)
def test_a_table_of_which_nothing_could_be_drawn_is_refused(settings, reason):
    with pytest.raises(ConfigurationError, match=reason):
        TableSpec(Transitions(), "prioritized", **settings)
