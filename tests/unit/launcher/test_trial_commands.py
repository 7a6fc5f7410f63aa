"""Commands for a trial that another shell runs, in the moments that are rare."""

import subprocess
import sys

import psutil
import pytest

from relaax.errors import ConfigurationError
from relaax.launcher.run_record import Process, RunRecord
from relaax.launcher.trial_commands import TrialPlace, show_logs, show_status, stop_trial


@pytest.fixture(name="place")
def _place(tmp_path):
    return TrialPlace(tmp_path, "cartpole", "one")


@pytest.fixture(name="record")
def _record(place):
    """Writes the record of a trial."""

    def record(**values):
        place.folder.mkdir(parents=True)
        place.record.write_text(RunRecord(**values).model_dump_json())

    return record


@pytest.fixture(name="launcher")
def _launcher():
    """A process in the place of a launcher."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as launcher:
        yield launcher
        launcher.kill()


@pytest.mark.parametrize(
    ("status", "said"), [(0, 3), (124, 3), (130, 3), (143, 3), (1, 1), (2, 1), (None, 1)]
)
def test_a_trial_that_is_over_or_was_stopped_has_not_failed(place, record, status, said):
    record(launcher=Process(status=status))
    assert show_status(place) == said


def test_a_trial_that_ends_before_it_is_stopped_does_not_run(place, record, launcher, monkeypatch):
    record(launcher=Process.of(launcher.pid))
    terminate = psutil.Process.terminate

    def terminate_too_late(process):
        launcher.kill()
        launcher.wait()
        terminate(process)

    monkeypatch.setattr(psutil.Process, "terminate", terminate_too_late)
    with pytest.raises(ConfigurationError, match="does not run: it was killed"):
        stop_trial(place, 1.0)


def test_a_trial_of_another_user_is_not_stopped(place, record, launcher, monkeypatch):
    record(launcher=Process.of(launcher.pid))

    def refuse(process):
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "terminate", refuse)
    with pytest.raises(ConfigurationError, match=f"process {launcher.pid} belongs to another user"):
        stop_trial(place, 1.0)


def test_a_log_of_another_machine_is_shown_and_not_followed(place, record, capsys):
    record(host="elsewhere", launcher=Process())
    place.log.write_text("2026-11-28 21:00:00,000 ps [1] INFO: one\n")
    assert show_logs(place, None, None, follow=False) == 0
    assert "INFO: one" in capsys.readouterr().out
    with pytest.raises(ConfigurationError, match="was run on elsewhere: ask there"):
        show_logs(place, None, None, follow=True)
