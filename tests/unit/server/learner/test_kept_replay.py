"""A learner saves what its replay holds, where that has room, or says why it does not."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from replay_cases import SCHEMA, steps

from relaax.configuration import LearnerOptions
from relaax.errors import CheckpointMismatch, ConfigurationError
from relaax.processes.available_memory import AvailableMemory
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.views import Transitions
from relaax.server.learner.kept_replay import kept_contents, kept_replay, misfit


def spec_of(capacity=256):
    return ReplaySpec(SCHEMA, capacity, {"all": TableSpec(Transitions(1), "uniform")})


class Start:
    """One start of a learner, with its replay."""

    def __init__(self, directory, capacity=256, is_replaying=True, **options):
        options = {"--checkpoint-dir": directory, **options}
        spec = spec_of(capacity)
        self.replay = spec.make(np.random.default_rng(0), 60.0)
        self.contents = kept_contents(
            LearnerOptions.model_validate(options), self.replay, spec, is_replaying
        )

    def store(self, count):
        self.replay.open_writer("w", SCHEMA)
        rows, flags = steps(0, count, start=True, end=0)
        self.replay.append("w", 0, 0, rows, flags)
        return self


def test_a_replay_that_is_to_be_saved_is_refused_without_the_memory_of_its_copies(
    tmp_path, monkeypatch
):
    spec = spec_of(100_000)
    monkeypatch.setattr(AvailableMemory, "bytes", lambda memory: 3 * spec.bytes - 1)

    def made(**options):
        named = {"--checkpoint-dir": tmp_path, **options}
        random = np.random.default_rng(0)
        return kept_replay(LearnerOptions.model_validate(named), spec, True, random)

    with pytest.raises(ConfigurationError, match=r"replay_size: .*their copies while they are sav"):
        made(**{"--save-replay": True})
    assert len(made()[0]) == 0


def test_a_restarted_learner_has_the_steps_of_the_one_before(tmp_path, caplog):
    Start(tmp_path).store(10).contents.save()
    assert len(Start(tmp_path).replay) == 10
    assert not caplog.records


@pytest.mark.parametrize("options", [{"--save-replay": False}, {"is_replaying": False}])
def test_without_a_word_they_are_not_saved_where_nobody_wants_them(tmp_path, options, caplog):
    assert Start(tmp_path, **options).contents is None
    assert not caplog.records


def test_without_a_place_it_says_so(caplog):
    assert Start(None).contents is None
    assert "the stored steps are not saved: there is no --checkpoint-dir" in caplog.text


def test_a_replay_that_has_no_room_is_not_saved_and_the_line_says_why(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=1000))
    assert Start(tmp_path).contents is None
    (message,) = caplog.messages
    assert "the stored steps are not saved: replay_size: 256 steps may need" in message
    assert f"GB of the disk of {tmp_path}" in message
    assert Start(tmp_path, **{"--save-replay": True}).contents is not None


def test_the_copies_that_a_save_makes_must_have_room_in_memory(tmp_path):
    spec = spec_of(10_000)
    needed = 2 * 10_000 * spec.schema.bytes
    assert "of the memory" in misfit(spec, tmp_path, lambda: needed)
    assert misfit(spec, tmp_path, lambda: 100 * needed) is None


def test_those_of_another_size_are_left_unless_they_are_asked_for(tmp_path, caplog):
    Start(tmp_path).store(10).contents.save()
    other = Start(tmp_path, capacity=512)
    assert len(other.replay) == 0
    assert "begins without the steps that were saved" in caplog.text
    with pytest.raises(CheckpointMismatch, match="capacity"):
        Start(tmp_path, capacity=512, **{"--save-replay": True})
    other.store(5).contents.save()
    assert len(Start(tmp_path, capacity=512).replay) == 5
