"""What a replay server holds is saved whole, restored, and not mistaken for something else."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from checkpoints import checkpoint
from replay_cases import SCHEMA, steps

from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.errors import CheckpointMismatch
from relaax.replay.process.replay_contents import Contents
from relaax.replay.schema import Column, Schema
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.views import Transitions


class Case:
    """A replay, and its contents in a directory."""

    def __init__(
        self,
        directory,
        schema=SCHEMA,
        capacity=256,
        steps_of_return=1,
        selector="uniform",
        lease=60.0,
        keep=1,
    ):
        table = TableSpec(Transitions(steps_of_return), selector)
        spec = ReplaySpec(schema, capacity, {"all": table})
        self.replay = spec.make(np.random.default_rng(0), lease)
        self.saver = CheckpointSaver(DirectoryStore(directory), keep=keep)
        self.contents = Contents(self.replay, spec, self.saver)

    def write(self, first, count):
        self.replay.open_writer("w", SCHEMA)
        rows, flags = steps(first, count, start=first == 0, end=0)
        self.replay.append("w", 0, first, rows, flags)


def files(directory):
    return sorted(path.name.split(".")[0] for path in directory.iterdir())


def test_the_last_save_is_restored_and_replaces_earlier_ones(tmp_path):
    case = Case(tmp_path)
    case.write(0, 10)
    case.contents.save()
    case.write(10, 10)
    case.contents.save()
    assert files(tmp_path) == ["cp-20", "cp-20"]
    again = Case(tmp_path)
    assert again.contents.restore() == 20
    assert again.replay.stats()["actions stored"] == 20


def test_nothing_is_saved_while_nothing_has_come(tmp_path):
    case = Case(tmp_path)
    case.contents.save()
    assert files(tmp_path) == []
    assert case.contents.restore() == 0
    case.write(0, 10)
    case.contents.save()
    again = Case(tmp_path)
    again.contents.restore()
    again.saver.save = lambda checkpoint: pytest.fail("nothing is new")
    again.contents.save()


def test_draws_are_saved_without_new_steps(tmp_path):
    case = Case(tmp_path)
    case.write(0, 10)
    case.contents.save()
    case.replay.sample("all", 4, 0.0)
    case.contents.save()
    again = Case(tmp_path)
    again.contents.restore()
    assert again.replay.stats()["items drawn"] == 4


def prioritize(case):
    keys = case.replay.sample("all", 8, 0.0).keys
    case.contents.save()
    case.replay.update_priorities("all", keys, np.full(8, 0.25))


@pytest.mark.parametrize(
    "change",
    [
        prioritize,
        lambda case: case.replay.close_writer("w"),
        lambda case: case.replay.reclaim(),
        lambda case: case.replay.evict(older_than_s=-1.0),
        lambda case: case.write(0, 10),  # the same once more
    ],
    ids=["priorities", "close", "reclaim", "evict", "duplicates"],
)
def test_changes_of_stored_steps_are_saved_without_new_steps_and_draws(tmp_path, change):
    case = Case(tmp_path, selector="prioritized", lease=-1.0)
    case.write(0, 10)
    case.contents.save()
    change(case)
    expected = case.replay.contents()
    case.contents.save()
    again = Case(tmp_path, selector="prioritized")
    again.contents.restore()
    restored = again.replay.contents()
    for name in ("storage/flags", "table/all/selector/priorities", "writers", "counts"):
        np.testing.assert_array_equal(restored[name], expected[name])
    again.saver.save = lambda checkpoint: pytest.fail("nothing is new")
    again.contents.save()


def test_where_nothing_was_evicted_and_no_lease_is_over_nothing_is_saved(tmp_path):
    case = Case(tmp_path)
    case.write(0, 10)
    case.contents.save()
    case.replay.reclaim()
    case.replay.evict(older_than_s=60.0)
    case.saver.save = lambda checkpoint: pytest.fail("nothing is new")
    case.contents.save()


def test_saves_are_numbered_on_from_older_ones_that_did_not_count_all_changes(tmp_path):
    case = Case(tmp_path)
    case.write(0, 10)
    case.replay.sample("all", 4, 0.0)
    contents = case.replay.contents()
    del contents["changes"]
    again = Case(tmp_path)
    again.replay.restore(contents)
    assert again.replay.changes == 14


def test_a_cut_file_is_left_out_with_one_line(tmp_path, caplog):
    case = Case(tmp_path)
    case.write(0, 10)
    case.contents.save()
    (data,) = tmp_path.glob("*.safetensors")
    data.write_bytes(data.read_bytes()[:-100])
    again = Case(tmp_path)
    assert again.contents.restore() == 0
    assert len(again.replay) == 0
    (line,) = caplog.messages
    assert "skipping the damaged checkpoint cp-10.json" in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"capacity": 512}, "capacity is 256 in the checkpoint and 512 here"),
        ({"steps_of_return": 3}, "tables is .*steps=1.* in the checkpoint and .*steps=3.* here"),
        (
            {"schema": Schema({"reward": Column(np.dtype(np.float32))})},
            "columns is .*'observation float32 \\[2\\]', .* in the checkpoint and .* here",
        ),
    ],
)
def test_the_contents_of_another_replay_are_refused_with_the_differences(tmp_path, other, reason):
    case = Case(tmp_path)
    case.write(0, 10)
    case.contents.save()
    with pytest.raises(CheckpointMismatch, match=reason):
        Case(tmp_path, **other).contents.restore()


def test_a_checkpoint_of_another_process_is_refused(tmp_path):
    CheckpointSaver(DirectoryStore(tmp_path)).save(checkpoint(7))
    with pytest.raises(CheckpointMismatch, match=r"of another training: .*capacity is absent"):
        Case(tmp_path).contents.restore()


def test_storing_goes_on_where_saving_fails(tmp_path, caplog):
    case = Case(tmp_path)
    case.write(0, 10)

    def fail(checkpoint):
        raise OSError("no space left")

    case.saver.save = fail
    with caplog.at_level(logging.ERROR):
        case.contents.save_or_warn()
    assert "the stored steps were not saved" in caplog.text
    assert "no space left" in caplog.text
    case.write(10, 5)


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        ("storage/rows", "storage/"),
        ("storage/counts", "storage/counts is "),
        ("storage/column/reward", "storage/column/reward is "),
        ("writers", "writers is "),
        ("counts", "counts is "),
    ],
)
def test_contents_that_no_replay_has_written_are_skipped_as_damaged_and_set_aside(
    tmp_path, caplog, spoilt, said
):
    """Whole by its manifest, which something else has written, too."""
    case = Case(tmp_path)
    case.write(0, 10)
    case.contents.save()
    saved = case.saver.restore_latest()
    for tensors in (
        {name: tensor for name, tensor in saved.tensors.items() if name != spoilt},
        {**saved.tensors, spoilt: np.full(3, -7)},
    ):
        case.saver.save(replace(saved, tensors=tensors))
        caplog.clear()
        again = Case(tmp_path)
        assert again.contents.restore() == 0
        assert len(again.replay) == 0
        (line,) = caplog.messages
        assert line.startswith(f"skipping the damaged checkpoint cp-10.json in {tmp_path}: {said}")
    again.write(0, 20)
    again.contents.save()
    assert files(tmp_path) == ["cp-20", "cp-20", "damaged-cp-10", "damaged-cp-10"]
    after = Case(tmp_path)
    assert after.contents.restore() == 20


def test_where_the_newest_is_damaged_the_one_before_is_restored(tmp_path, caplog):
    case = Case(tmp_path, keep=2)
    case.write(0, 10)
    case.contents.save()
    case.write(10, 10)
    case.contents.save()
    saved = case.saver.restore_latest()
    rewards = saved.tensors["storage/column/reward"].copy()
    rewards[7] = np.nan
    tensors = {**saved.tensors, "storage/column/reward": rewards}
    case.saver.save(replace(saved, tensors=tensors))
    again = Case(tmp_path)
    assert again.contents.restore() == 10
    assert "storage/column/reward is nan at place 7, and must be finite" in caplog.text
