"""Scores of checkpoints: which evaluations they are the mean of, and what is kept for them."""

import json

import pytest
from checkpoints import checkpoint, saver, steps

from relaax.errors import ConfigurationError

# The version of a checkpoint is twice its step.


def score_of(directory, step):
    path = directory / f"cp-{step}.score.json"
    return json.loads(path.read_text()) if path.exists() else None


def scored(directory, scores, keep=5, keep_best=1):
    """Save a checkpoint for each step, with one evaluation of its version."""
    one = saver(directory, keep, keep_best)
    for step, score in scores.items():
        if score is not None:
            one.scores.add(2 * step, score)
        one.save(checkpoint(step))
    return one


def test_a_checkpoint_is_scored_by_the_versions_since_the_one_before(tmp_path):
    one = saver(tmp_path)
    for version, score in ((3, 1.0), (10, 2.0), (11, 6.0), (20, 10.0), (21, 100.0)):
        one.scores.add(version, score)
    one.save(checkpoint(5))
    one.save(checkpoint(10))
    found = {"after_version": -1, "version": 10, "score": 1.5, "episodes": 2}
    assert score_of(tmp_path, 5) == found
    found = {"after_version": 10, "version": 20, "score": 8.0, "episodes": 2}
    assert score_of(tmp_path, 10) == found


def test_an_evaluation_that_ends_late_counts_at_the_next_save(tmp_path):
    one = scored(tmp_path, {5: 1.0, 10: 2.0})
    one.scores.add(10, 3.0)
    one.save(checkpoint(15))
    assert score_of(tmp_path, 5)["score"] == 2.0
    assert score_of(tmp_path, 10)["episodes"] == 1
    assert score_of(tmp_path, 15) is None


def test_episodes_that_end_after_the_last_save_are_written_at_the_end(tmp_path):
    one = scored(tmp_path, {5: 1.0})
    one.scores.add(10, 2.0)
    one.close()
    assert score_of(tmp_path, 5)["score"] == 1.5


def test_a_restart_goes_on_with_the_score_of_the_restored_checkpoint(tmp_path):
    scored(tmp_path, {5: 1.0})
    again = saver(tmp_path)
    again.restore_latest()
    again.scores.add(10, 4.0)
    again.scores.add(12, 7.0)
    again.save(checkpoint(6))
    assert score_of(tmp_path, 5) == {
        "after_version": -1, "version": 10, "score": 2.5, "episodes": 2,
    }  # fmt: skip
    assert score_of(tmp_path, 6)["score"] == 7.0


def test_a_restored_checkpoint_without_a_score_gets_that_of_its_own_version(tmp_path):
    saver(tmp_path).save(checkpoint(5))
    again = saver(tmp_path)
    again.restore_latest()
    again.scores.add(10, 4.0)
    again.close()
    assert score_of(tmp_path, 5) == {
        "after_version": 9, "version": 10, "score": 4.0, "episodes": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("keep_best", "kept"), [(0, [4, 5]), (1, [2, 4, 5]), (2, [1, 2, 4, 5])])
def test_the_newest_never_push_the_best_out(tmp_path, keep_best, kept):
    scored(tmp_path, {1: 8.0, 2: 9.0, 3: 1.0, 4: None, 5: 0.0}, keep=2, keep_best=keep_best)
    assert steps(tmp_path) == kept
    found = {int(path.name[3:-11]) for path in tmp_path.glob("cp-*.score.json")}
    assert found == set(kept) - {4}


def test_a_better_one_takes_the_place_of_the_best(tmp_path):
    scored(tmp_path, {1: 5.0, 2: 1.0, 3: 7.0, 4: 1.0}, keep=1)
    assert steps(tmp_path) == [3, 4]


def test_a_restart_knows_the_best_checkpoint(tmp_path):
    scored(tmp_path, {1: 9.0, 2: 1.0}, keep=1)
    again = saver(tmp_path, keep=1, keep_best=1)
    again.restore_latest()
    again.save(checkpoint(3))
    assert steps(tmp_path) == [1, 3]


@pytest.mark.parametrize(
    ("restore", "step"), [("latest", 4), ("latest-1", 3), ("latest-3", 1), ("best", 2), ("3", 3)]
)
def test_the_restored_checkpoint_can_be_chosen(tmp_path, restore, step):
    scored(tmp_path, {1: 8.0, 2: 9.0, 3: 1.0, 4: 2.0})
    found = saver(tmp_path, restore=restore).restore_latest()
    assert found is not None
    assert found.global_t == step


@pytest.mark.parametrize(
    ("restore", "reason"),
    [
        ("latest-4", "there are 4 checkpoints"),
        ("7", "there are: 4, 3, 2, 1"),
        ("best", "is known to be best"),
    ],
)
def test_a_missing_choice_is_refused_in_words(tmp_path, restore, reason):
    scored(tmp_path, {1: None, 2: None, 3: None, 4: None})
    with pytest.raises(ConfigurationError, match=reason):
        saver(tmp_path, restore=restore).restore_latest()


def test_an_empty_place_has_nothing_to_choose_from_but_for_a_step(tmp_path):
    assert saver(tmp_path, restore="best").restore_latest() is None
    with pytest.raises(ConfigurationError, match="there are: none"):
        saver(tmp_path, restore="5").restore_latest()


def test_a_damaged_chosen_checkpoint_does_not_start_the_training_anew(tmp_path):
    scored(tmp_path, {1: 8.0, 2: 9.0})
    (tmp_path / "cp-2.json").write_text("garbage")
    assert saver(tmp_path, restore="best").restore_latest().global_t == 1
    with pytest.raises(ConfigurationError, match="is whole"):
        saver(tmp_path, restore="2").restore_latest()


def test_checkpoints_after_the_chosen_one_are_set_aside_by_the_next_save(tmp_path):
    scored(tmp_path, {1: 8.0, 2: 9.0, 3: 1.0, 4: 2.0})
    again = saver(tmp_path, restore="best")
    again.restore_latest()
    assert steps(tmp_path) == [1, 2, 3, 4]
    again.scores.add(5, 3.0)
    again.save(checkpoint(3, value=0.5))
    assert steps(tmp_path) == [1, 2, 3]
    assert len(list(tmp_path.glob("abandoned-cp-3*"))) == 3
    assert len(list(tmp_path.glob("abandoned-cp-4*"))) == 3
    assert score_of(tmp_path, 3)["score"] == 3.0
    assert saver(tmp_path).restore_latest().tensors["w"][0, 0] == 0.5


def test_a_damaged_score_file_is_ignored_with_a_warning(tmp_path, caplog):
    scored(tmp_path, {1: 8.0, 2: 9.0})
    (tmp_path / "cp-2.score.json").write_text('{"score": NaN}')
    assert saver(tmp_path, restore="best").restore_latest().global_t == 1
    assert "cp-2.score.json" in caplog.text


def test_while_nothing_is_learnt_after_it_later_checkpoints_stay(tmp_path):
    scored(tmp_path, {1: 8.0, 2: 9.0, 3: 1.0})
    again = saver(tmp_path, restore="best")
    again.save(again.restore_latest())
    assert steps(tmp_path) == [1, 2, 3]
    assert saver(tmp_path).restore_latest().global_t == 3
