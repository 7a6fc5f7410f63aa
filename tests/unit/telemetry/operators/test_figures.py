"""Figures for operators, made of what servers count."""

import numpy as np
import pytest
from clock import Clock
from replay_cases import SCHEMA, steps

from relaax.parameters.process.wiring import FORGOTTEN_AFTER_S, NewestScalars
from relaax.replay.limiter import Limiter
from relaax.replay.process.replay_metrics import replay_figures
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.views import Transitions
from relaax.telemetry.operators.families import SaveRecord


def read(figures):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in figures
        for sample in family.samples
    }


def test_the_age_is_that_of_the_last_saved_checkpoint():
    clock = Clock()
    record = SaveRecord(900.0, clock)
    clock.now += 10
    assert read(record.figures())["relaax_checkpoint_age_seconds",] == 10
    with record.saving():
        clock.now += 5
    clock.now += 1
    with pytest.raises(OSError, match="disk full"), record.saving():
        raise OSError("disk full")
    found = read(record.figures())
    assert found["relaax_checkpoint_age_seconds",] == 1
    assert found["relaax_checkpoints_saved_total",] == 1
    assert found["relaax_checkpoint_failures_total",] == 1
    assert found["relaax_checkpoint_interval_seconds",] == 900


def test_saves_of_other_processes_count_too():
    clock = Clock()
    record = SaveRecord(900.0, clock)
    clock.now += 10
    record.note_saved()
    record.note_failed()
    assert record.saved == 1
    assert read(record.figures())["relaax_checkpoint_age_seconds",] == 0
    assert read(record.figures())["relaax_checkpoint_failures_total",] == 1


def test_the_newest_scalars_are_shown_until_nobody_stores_them_any_more():
    clock = Clock()
    scalars = NewestScalars(clock)
    scalars.scalar("learner/fetch time", 1.0)
    scalars.scalar("learner/fetch time", 2.0, 77)
    scalars.scalar("inference/time p99", 0.5)
    assert read(scalars.figures()) == {
        ("relaax_scalar", "learner/fetch time"): 2.0,
        ("relaax_scalar", "inference/time p99"): 0.5,
    }
    clock.now += FORGOTTEN_AFTER_S - 1
    scalars.scalar("learner/fetch time", 3.0)
    clock.now += 2
    assert read(scalars.figures()) == {("relaax_scalar", "learner/fetch time"): 3.0}


@pytest.mark.parametrize("name", ["client/anything", "evaluation/client x"])
def test_names_without_end_are_no_time_series(name):
    scalars = NewestScalars()
    scalars.scalar(name, 1.0)
    assert read(scalars.figures()) == {}


def test_a_replay_shows_its_sizes_and_its_work():
    table = TableSpec(Transitions(), "uniform", Limiter(), alpha=1.0)
    replay = ReplaySpec(SCHEMA, 512, {"all": table}).make(np.random.default_rng(1), 60.0)
    replay.open_writer("w", SCHEMA)
    rows, flags = steps(0, 20)
    replay.append("w", 0, 0, rows, flags)
    found = read(replay_figures(replay.stats)())
    assert found["relaax_replay_steps",] == found["relaax_replay_steps_stored_total",] > 0
    assert found["relaax_replay_capacity_steps",] == 512
    assert found["relaax_replay_writers",] == 1
    assert found["relaax_replay_steps_gone_total", "lost"] == 0


def test_a_learner_without_a_replay_of_its_own_shows_no_replay():
    assert list(replay_figures(dict)()) == []
