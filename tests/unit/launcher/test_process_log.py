"""What ``relaax-train`` writes of its processes into one file, and where that is."""

from datetime import datetime

import pytest

from relaax.launcher.described import described
from relaax.launcher.process_log import ProcessLog, incarnation, log_beside_checkpoints


def processes(*commands):
    return described({str(number): command for number, command in enumerate(commands)})


WHEN = datetime(2026, 11, 22, 17, 0, 1, 250_000)


@pytest.fixture(name="clock")
def _clock():
    return [0.0]


@pytest.fixture(name="log")
def _log(tmp_path, clock):
    log = ProcessLog(tmp_path / "log", lambda: clock[0])
    log.pids["rlx"] = 12
    yield log
    log.close()


@pytest.fixture(name="written")
def _written(tmp_path, log):
    """Writes lines of ``rlx``, and returns what is in the file behind its time."""

    def written(*lines):
        for line in lines:
            log.write("rlx", WHEN, line)
        found = (tmp_path / "log").read_text().splitlines()
        assert all(line.startswith("2026-11-22 17:00:01,250 ") for line in found)
        return [line[24:] for line in found]

    return written


def test_a_logged_line_keeps_its_level_and_its_worker(written):
    assert written("2026-11-22 17:00:01,200:34:ERROR:it: failed") == ["rlx [34] ERROR: it: failed"]


def test_a_printed_line_has_the_name_of_the_process_and_is_information(written):
    assert written("restored step 7") == ["rlx [12] INFO: restored step 7"]


def test_the_line_with_which_a_server_gives_up_is_an_error(written):
    said = "relaax-rlx-server: error: --bind: cannot listen"
    assert written(said) == [f"rlx [12] ERROR: {said}"]


def test_how_far_a_process_is_is_written_once_a_minute(tmp_path, log, clock):
    for now in (0.0, 59.0, 60.0):
        clock[0] = now
        for line in ("training: step 1", "learner: updates 7"):
            log.write("rlx", WHEN, line, is_state=True)
    log.write("rlx", WHEN, "a warning")
    written = [line.partition("INFO: ")[2] for line in (tmp_path / "log").read_text().splitlines()]
    assert written == ["training: step 1"] * 2 + ["a warning"]


@pytest.fixture(name="yaml")
def _yaml(tmp_path):
    """Writes a YAML file whose parameter server has these keys; returns its command."""

    def command(section):
        path = tmp_path / "t.yaml"
        path.write_text(f"relaax-parameter-server: {section}\nalgorithm: {{name: da3c}}\n")
        return f"exec relaax-parameter-server --config {path}"

    return command


@pytest.mark.parametrize(
    ("section", "flags", "log"),
    [
        ("{--checkpoint-dir: training/x/checkpoints}", "", "training/x/log"),
        ("{--metrics-dir: training/x/metrics}", "", "training/x/log"),
        ("{--checkpoint-dir: a/checkpoints, --metrics-dir: b/metrics}", "", "a/log"),
        ("{--checkpoint-dir: a/checkpoints}", "--checkpoint-dir c/checkpoints", "c/log"),
        ("{--checkpoint-aws-s3: [bucket, key]}", "--metrics-dir=d/metrics", "d/log"),
    ],
)
def test_the_log_is_in_the_folder_of_the_training(yaml, section, flags, log):
    commands = ["exec relaax-learner --config other.yaml", f"{yaml(section)} {flags}"]
    assert str(log_beside_checkpoints(processes(*commands))) == log


@pytest.mark.parametrize("section", ["{}", "7", "{--checkpoint-dir: 7}", "{ nonsense"])
def test_where_the_folder_is_not_known_there_is_no_log(yaml, section):
    assert log_beside_checkpoints(processes(yaml(section))) is None


@pytest.mark.parametrize(
    "command",
    [
        "python env.py",
        "relaax-parameter-server --config missing.yaml",
        "relaax-parameter-server --config",
        'relaax-parameter-server --config "half',
    ],
)
def test_a_command_that_will_fail_is_left_to_the_server(command):
    assert log_beside_checkpoints(processes(command)) is None


def test_a_training_goes_on_from_its_newest_checkpoint(yaml, tmp_path):
    command = f"{yaml('{}')} --checkpoint-dir {tmp_path / 'checkpoints'}"
    assert incarnation(processes(command), None) == 0
    (tmp_path / "checkpoints").mkdir()
    for step in (500, 1200):
        (tmp_path / "checkpoints" / f"cp-{step}.json").touch()
    assert incarnation(processes("exec tensorboard", command), None) == 1200


def test_starts_from_checkpoints_in_s3_are_counted_beside_the_log(yaml, tmp_path):
    log = tmp_path / "log"
    command = yaml("{--checkpoint-aws-s3: [bucket, key], --metrics-dir: m}")
    other = f"{command} --checkpoint-aws-s3 bucket other"
    numbers = [incarnation(processes(each), log) for each in (command, command, other, command)]
    assert numbers[0] == numbers[2] == 0
    assert len({numbers[0], numbers[1], numbers[3]}) == 3
    assert incarnation(processes(command), None) == 0


def test_a_flag_says_where_checkpoints_are_in_the_place_of_the_file(yaml, tmp_path):
    (tmp_path / "cp-7.json").touch()
    in_s3 = yaml("{--checkpoint-aws-s3: [bucket, key]}")
    assert incarnation(processes(f"{in_s3} --checkpoint-dir {tmp_path}"), tmp_path / "log") == 7
    in_folder = yaml(f"{{--checkpoint-dir: {tmp_path}}}")
    assert (
        incarnation(processes(f"{in_folder} --checkpoint-aws-s3 bucket key"), tmp_path / "log") == 0
    )


def test_a_count_that_was_damaged_begins_anew(yaml, tmp_path):
    (tmp_path / "starts.json").write_text("[")
    assert (
        incarnation(processes(yaml("{--checkpoint-aws-s3: [bucket, key]}")), tmp_path / "log") == 0
    )
