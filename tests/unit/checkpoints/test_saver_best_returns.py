"""Without evaluations, the best checkpoints are those of the highest mean return."""

import json

import pytest
from checkpoints import checkpoint, steps

from relaax.checkpoints import CheckpointSaver, DirectoryStore, MeanReturn, Restore
from relaax.checkpoints.checkpoint_list import print_checkpoints
from relaax.configuration import AwsAccess


class Earning:
    """A training whose last episodes have a mean return."""

    def __init__(self, directory, keep=1, keep_best=1, restore="latest"):
        self.earned = None
        self.saver = CheckpointSaver(
            DirectoryStore(directory), keep, keep_best, Restore.parse(restore), lambda: self.earned
        )

    def save(self, step, mean, episodes=100):
        self.earned = None if mean is None else MeanReturn(mean, episodes)
        self.saver.save(checkpoint(step))


def test_the_best_is_kept_beside_the_newest(tmp_path):
    training = Earning(tmp_path)
    for step, mean in ((10, 1.0), (20, 9.0), (30, 3.0), (40, 4.0)):
        training.save(step, mean)
    assert steps(tmp_path) == [20, 40]
    manifest = json.loads((tmp_path / "cp-20.json").read_text())
    assert (manifest["mean_return"], manifest["episodes"]) == (9.0, 100)


def test_it_is_known_after_a_restart(tmp_path):
    Earning(tmp_path).save(20, 9.0)
    training = Earning(tmp_path)
    assert training.saver.restore_latest().global_t == 20
    for step, mean in ((30, 3.0), (40, 4.0)):
        training.save(step, mean)
    assert steps(tmp_path) == [20, 40]
    assert Earning(tmp_path, restore="best").saver.restore_latest().global_t == 20


def test_few_episodes_and_nan_are_not_compared(tmp_path):
    training = Earning(tmp_path)
    cases = ((10, 5.0, 10), (20, 9.0, 9), (30, float("nan"), 100), (40, None, 0))
    for step, mean, episodes in cases:
        training.save(step, mean, episodes)
    assert steps(tmp_path) == [10, 40]


def test_evaluations_decide_alone_where_there_are_any(tmp_path):
    training = Earning(tmp_path, keep=2)
    training.save(10, 9.0)
    training.save(20, 1.0)
    training.saver.scores.add(40, 100.0)  # of step 20
    training.save(30, 2.0)
    training.save(40, 3.0)
    assert steps(tmp_path) == [20, 30, 40]


def test_a_checkpoint_until_the_next_one_is_never_the_best(tmp_path):
    training = Earning(tmp_path)
    training.save(10, 1.0)
    training.earned = MeanReturn(9.0, 100)
    training.saver.save_until_next(checkpoint(20))
    training.save(30, 0.5)
    assert steps(tmp_path) == [10, 30]


def listed(directory, capsys):
    assert print_checkpoints(directory, None, AwsAccess()) == 0
    return capsys.readouterr().out.splitlines()


def test_the_table_lists_the_checkpoints(tmp_path, capsys):
    training = Earning(tmp_path, keep=5)
    training.save(1000, 437.24)
    training.save(2000, 20.0, 50)
    training.saver.save_until_next(checkpoint(3000))
    (tmp_path / "cp-500.json").write_text("{}")
    before = sorted(path.name for path in tmp_path.iterdir())
    title, heads, *rows = listed(tmp_path, capsys)
    assert title == f"checkpoints in {tmp_path}:"
    assert heads.split() == ["step", "saved", "(UTC)", "size", "mean", "return", "evaluated"]
    assert [row.split()[0] for row in rows] == ["3,000", "2,000", "1,000", "500"]
    assert rows[0].endswith("latest, until the next one")
    assert " 20.0 (50)  " in rows[1]
    assert rows[2].endswith("437.2 (100)          -  best")
    assert rows[3].endswith("its manifest cannot be read")
    assert before == sorted(path.name for path in tmp_path.iterdir())


def test_scores_of_evaluations_are_shown_and_decide(tmp_path, capsys):
    training = Earning(tmp_path, keep=5)
    training.save(1000, 1.0)
    training.save(2000, 9.0)
    training.saver.scores.add(2000, 487.35)  # the version of step 1000
    training.saver.close()
    *_, newest, oldest = listed(tmp_path, capsys)
    assert newest.endswith("latest")
    assert oldest.endswith("1.0 (100)  487.4 (1)  best")


@pytest.mark.parametrize("made", [True, False])
def test_an_empty_place_is_said(tmp_path, capsys, made):
    from relaax.errors import ConfigurationError

    if made:
        assert listed(tmp_path, capsys) == [f"there is no checkpoint in {tmp_path}"]
    else:
        with pytest.raises(ConfigurationError, match="there is no directory"):
            listed(tmp_path / "missing", capsys)
