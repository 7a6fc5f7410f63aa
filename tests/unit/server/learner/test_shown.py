"""A learner that is made again for an order goes on at the same port and in the same run."""

import json
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from operators import ask, figures
from processes import free_port, wait_for
from stored_metrics import StoredMetrics
from wandb_records import kinds_of, records

from relaax.configuration import LearnerOptions
from relaax.server.learner.loop import LearnerMeasurements
from relaax.server.learner.shown import LearnerShown
from relaax.telemetry.interval_metrics import IntervalMetrics

EXPERIENCE = SimpleNamespace(stats=dict)
WATCH = SimpleNamespace(silence_s=lambda: 0.0)


def loop(iteration, updates):
    """What is shown of a loop that has made so many updates, of 8 items each."""
    measured = LearnerMeasurements(IntervalMetrics(StoredMetrics()))
    for _ in range(updates):
        measured.updated(8)
    return SimpleNamespace(iteration=iteration, measured=measured)


@pytest.mark.filterwarnings("default")  # those of the package are its own
def test_two_orders_have_one_port_and_one_run(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    run = {"project": "p", "group": "g", "job_type": "trainer", "name": "n"}
    run |= {"config": {"trainer.args.rate": 1.0}}
    (tmp_path / "runs.yaml").write_text(json.dumps({"runs": [run]}))
    url = f"localhost:{free_port()}"
    options = LearnerOptions.model_validate(
        {"--http-bind": url, "--wandb-runs": str(tmp_path / "runs.yaml")}
    )
    with ExitStack() as resources:
        shown = LearnerShown(options, resources)
        assert ask(url, "/readyz") == (503, "it is starting\n")
        shown.show(loop(5, 5), EXPERIENCE, saves=False)
        shown.begin(WATCH, {})
        assert ask(url, "/readyz")[0] == 200
        shown.end()
        assert ask(url, "/readyz") == (503, "it is starting\n")
        assert figures(url)["relaax_learner_updates_total",] == 5
        shown.show(loop(9, 2), EXPERIENCE, saves=True)
        shown.begin(WATCH, {"rate": 0.5, "inner": {"b": 3}})
        found = figures(url)
        assert found["relaax_learner_updates_total",] == 7
        assert found["relaax_learner_items_total",] == 56
        assert found["relaax_learner_iteration",] == 9
        assert found["relaax_checkpoints_saved_total",] == 0
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    wait_for(lambda: "exit" in kinds_of(records(path)), "the end of the run's file")
    changed = [each.config for each in records(path) if each.WhichOneof("record_type") == "config"]
    assert {e.key: json.loads(e.value_json) for each in changed for e in each.update}.items() >= {
        "trainer.args.rate": 0.5, "trainer.args.inner.b": 3
    }.items()  # fmt: skip
