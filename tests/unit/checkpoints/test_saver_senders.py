"""A checkpoint says whose steps are in it."""

import json
from contextlib import nullcontext

import pytest
from checkpoints import checkpoint, saver

from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.checkpoints.manifest import describe, parse
from relaax.errors import DamagedCheckpoint
from relaax.parameters.sender_totals import SenderTotals

#: The largest sender that there is, and another.
TOTALS = {2**63: 2**64 - 1, 7: 30}


class Training:
    """Counts steps, and saves at step 100."""

    def __init__(self, place):
        self.senders = SenderTotals()
        self.saver = CheckpointSaver(DirectoryStore(place), keep=3, senders=self.senders)

    def count(self, step):
        for sender, total in TOTALS.items():
            self.senders.count(sender, 1, total, lambda _: step)

    def known(self):
        with self.senders.recording():
            return self.senders.as_of(2**63)


@pytest.fixture(name="training")
def _training(tmp_path):
    return Training(tmp_path)


@pytest.mark.parametrize("kind", ["save", "save_until_next"])
def test_counts_up_to_a_checkpoint_come_back_with_it(training, tmp_path, kind):
    training.count(100)
    with training.senders.recording():
        training.senders.count(9, 1, 1, lambda _: 101)
        getattr(training.saver, kind)(checkpoint(100))
    again = Training(tmp_path)
    assert again.saver.restore_latest().global_t == 100
    assert list(again.known().items()) == list(TOTALS.items())


def test_a_checkpoint_without_a_recording_has_no_counts(training, tmp_path):
    training.count(100)
    training.saver.save(checkpoint(100))
    again = Training(tmp_path)
    assert again.saver.restore_latest().global_t == 100
    assert again.known() == {}


def test_an_older_checkpoint_loads_and_has_no_counts(tmp_path):
    saver(tmp_path).save(checkpoint(100))
    path = tmp_path / "cp-100.json"
    content = json.loads(path.read_text())
    del content["senders"], content["check"]
    path.write_text(json.dumps(content))
    again = Training(tmp_path)
    assert again.saver.restore_latest().global_t == 100
    assert again.known() == {}


def test_the_counts_of_an_older_checkpoint_replace_those_of_a_damaged_one(training, tmp_path):
    for step, senders in ((90, training.senders.recording()), (100, nullcontext())):
        training.count(step)
        with senders:
            training.saver.save(checkpoint(step))
    again = Training(tmp_path)
    again.saver.restore_latest()
    assert again.known() == {}
    assert again.saver.restore_before(100).global_t == 90
    assert again.known() == TOTALS


@pytest.mark.parametrize(
    "senders",
    [
        [],
        None,
        {"0": 1},
        {"-7": 1},
        {"07": 1},
        {"7.0": 1},
        {"": 1},
        {"9" * 21: 1},
        {"\N{ARABIC-INDIC DIGIT SEVEN}": 1},
        {"7\n": 1},
        {"7": -1},
        {"7": 2**64},
        {"7": 1.0},
        {"7": "1"},
        {"7": True},
        {"7": None},
        {"7": {}},
        {str(number): 1 for number in range(1, 100_002)},
    ],
    ids=lambda senders: repr(senders)[:20],
)
def test_senders_and_totals_that_no_message_has_are_damage(senders):
    content = json.loads(describe(checkpoint(42), b"data").to_bytes())
    del content["check"]
    assert parse(json.dumps(content).encode(), 42).senders == {}
    content["senders"] = senders
    with pytest.raises(DamagedCheckpoint, match="senders"):
        parse(json.dumps(content).encode(), 42)
