"""Weights & Biases as a second sink: for real in its offline mode, which needs no network."""

import json
import math
import sys
import time
from types import SimpleNamespace

import pytest
from processes import wait_for
from stored_metrics import StoredMetrics
from wandb_records import kinds_of, records, rows_of

from relaax.checkpoints import DirectoryStore
from relaax.errors import ConfigurationError
from relaax.telemetry.training import RunRecord, SeveralMetrics, WandbWriter
from relaax.telemetry.training.event_file import Scalar
from relaax.telemetry.training.wandb_log import WandbLog


@pytest.fixture(name="offline")
def _offline(monkeypatch, tmp_path):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.filterwarnings("default")  # those of the package are its own
def test_an_offline_run_has_the_metrics_by_global_step_and_the_parameters(offline, tmp_path):
    pytest.importorskip("wandb")
    writer = WandbWriter("pendulum", "run one", lambda: 42, {"seed": 7}, tmp_path / "metrics")
    for step in range(3):
        writer.scalar("learner/policy loss", step / 2, step)
        writer.scalar("episode/reward", math.nan if step == 1 else -step, step)
    writer.scalar("server/connections", 4)
    writer.update_config({"seed": 8})
    writer.close()
    (path,) = tmp_path.glob("metrics/wandb/offline-run-*/*.wandb")
    wait_for(lambda: "exit" in kinds_of(records(path)), "the end of the run's file")
    found = list(records(path))
    (run,) = [record.run for record in found if record.WhichOneof("record_type") == "run"]
    assert (run.project, run.display_name, run.run_group) == ("pendulum", "run one", "run one")
    assert "7" in [entry.value_json for entry in run.config.update if entry.key == "seed"]
    changed = [record.config for record in found if record.WhichOneof("record_type") == "config"]
    assert ("seed", "8") in [(e.key, e.value_json) for each in changed for e in each.update]
    first, second, third, last = rows_of(found)
    assert first == {"learner/policy_loss": 0, "episode/reward": 0, "global_step": 0}
    assert math.isnan(float(second["episode/reward"]))
    assert third == {"learner/policy_loss": 1, "episode/reward": -2, "global_step": 2}
    assert last == {"server/connections": 4, "global_step": 42}


def test_without_the_package_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigurationError, match=r"--wandb-project.*pip install 'relaax\[wandb\]'"):
        WandbWriter("p", "run", lambda: 0, {})


@pytest.mark.filterwarnings("default")
def test_without_a_key_the_error_has_a_remedy_and_there_is_no_prompt(monkeypatch, tmp_path):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setattr(wandb, "login", lambda prompt: prompt)
    monkeypatch.setattr(
        wandb, "setup", lambda s: SimpleNamespace(settings=SimpleNamespace(mode="online"))
    )
    with pytest.raises(ConfigurationError, match="WANDB_MODE=offline"):
        WandbWriter("p", "run", lambda: 0, {}, tmp_path)


class Run:
    def __init__(self, error=None):
        self.logged, self.finished, self.error = [], False, error

    def log(self, values):
        if self.error is not None:
            raise self.error
        self.logged.append(values)

    def finish(self):
        self.finished = True


def scalar(tag, y, step):
    return Scalar(tag, y, step, 0.0)


def test_values_of_one_step_are_one_row():
    run = Run()
    log = WandbLog(run)
    for tag, y, step in (("a", 1, 5), ("b", 2, 5), ("a", 3, 5), ("a", 4, 6)):
        log.write(scalar(tag, y, step))
    log.close()
    assert run.logged == [
        {"a": 1, "b": 2, "global_step": 5}, {"a": 3, "global_step": 5}, {"a": 4, "global_step": 6},
    ]  # fmt: skip
    assert run.finished


def test_a_run_that_fails_is_logged_once_and_stops_nothing(caplog):
    run = Run(error=OSError("the service is gone"))
    log = WandbLog(run)
    for step in range(5):
        log.write(scalar("a", 1.0, step))
    log.close()
    assert [record.getMessage() for record in caplog.records] == [
        "cannot hand metrics to Weights & Biases"
    ]
    assert run.finished


def test_every_place_gets_every_value():
    places = StoredMetrics(), StoredMetrics()
    SeveralMetrics(places).scalar("a", 1.5, 7)
    assert [place.values for place in places] == [{"a": [(1.5, 7)]}] * 2


def test_a_restarted_training_goes_on_with_its_run_and_repeats_no_step(tmp_path):
    run, store = Run(), DirectoryStore(tmp_path)
    first = RunRecord(store)
    log = WandbLog(run, first)
    for step in (500, 600, 700):
        log.write(scalar("reward", step, step))
    log.write(scalar("reward by version", 1, 40))
    log.flush()  # and is killed: it restores the checkpoint of step 500
    second = RunRecord(store)
    assert (second.id, second.is_found) == (first.id, True)
    again = WandbLog(run, second)
    for step in (550, 650, 700, 750):
        again.write(scalar("reward", -step, step))
    again.write(scalar("reward by version", 2, 41))
    again.close()
    assert [row["reward"] for row in run.logged if "reward" in row] == [500, 600, 700, -750]
    assert [row["reward by version"] for row in run.logged if "reward by version" in row] == [1, 2]


def test_the_record_has_values_before_they_are_handed_over(tmp_path):
    run = Run(error=OSError("the service is gone"))
    log = WandbLog(run, RunRecord(DirectoryStore(tmp_path)))
    log.write(scalar("reward", 1, 700))
    log.flush()
    assert json.loads((tmp_path / "wandb.json").read_bytes())["steps"] == {"reward": 700}


@pytest.mark.parametrize("written", [b"", b"{", b'{"id": "../x"}', b'{"id": 5}'])
def test_a_record_that_cannot_be_read_begins_another_run(tmp_path, written, caplog):
    (tmp_path / "wandb.json").write_bytes(written)
    assert not RunRecord(DirectoryStore(tmp_path)).is_found
    assert "a new run begins" in caplog.text


def test_a_training_that_is_sent_back_on_purpose_is_another_run(tmp_path):
    first = RunRecord(DirectoryStore(tmp_path))
    first.save()
    assert RunRecord(DirectoryStore(tmp_path), is_new=True).id != first.id


@pytest.mark.filterwarnings("default")
def test_the_second_start_has_the_same_id_at_weights_and_biases(offline, tmp_path):
    pytest.importorskip("wandb")
    began = 0.0
    for step in (700, 750):
        # The package names a folder by the second: no training starts twice in one.
        wait_for(lambda after=began: int(time.time()) > after, "another second")
        began = time.time()
        record = RunRecord(DirectoryStore(tmp_path))
        writer = WandbWriter("p", "run", lambda: 0, {}, tmp_path / "metrics", record)
        for at in (650, step):
            writer.scalar("episode/reward", at, at)
        writer.close()
    paths = sorted(tmp_path.glob(f"metrics/wandb/offline-run-*-{record.id}/*.wandb"))
    assert len(paths) == 2
    # The package's own process writes the files.
    wait_for(
        lambda: (
            [row["global_step"] for path in paths for row in rows_of(records(path))]
            == [650, 700, 750]
        ),
        "what both starts logged",
    )
