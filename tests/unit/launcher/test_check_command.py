"""What ``relaax-train --check`` prints, and that nothing is started without a look."""

import pytest
import yaml

import relaax
from relaax.launcher import train as run_train
from relaax.launcher.main import main

DA3C = {"name": "da3c", "action_size": 2, "state_size": [4]}
LINES = """\
ps: exec relaax-parameter-server --config my.yaml
rlx: exec relaax-rlx-server --config my.yaml
env: exec python play.py --rlx-server localhost:7001
"""


@pytest.fixture(name="folder", autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Procfile").write_text(LINES)
    (tmp_path / "play.py").write_text("open('played', 'w')")
    write(DA3C)
    return tmp_path


def write(algorithm, **sections):
    with open("my.yaml", "w") as file:
        yaml.safe_dump({**sections, "algorithm": algorithm}, file)


@pytest.fixture(name="train")
def _train(monkeypatch, capsys):
    """Runs the command, and returns its status and all that it prints."""

    def train(*arguments):
        monkeypatch.setattr("sys.argv", ["relaax-train", *arguments])
        try:
            status = main()
        except SystemExit as end:
            status = end.code
        return status, "".join(capsys.readouterr())

    return train


@pytest.mark.parametrize("serial", [[], ["--serial"], ["--serial", "my.yaml"]])
def test_a_check_starts_nothing(train, folder, serial):
    assert train("--check", *serial) == (0, "nothing is wrong\n")
    assert not (folder / "played").exists()


@pytest.mark.parametrize("arguments", [["--check"], ["--check", "--serial"], ["--serial"], []])
def test_what_is_wrong_is_said_before_anything_is_started(train, folder, arguments):
    write({**DA3C, "learning_rats": 1})
    status, said = train(*arguments)
    assert status == 2
    assert said.startswith("relaax-train: error: my.yaml: algorithm: learning_rats: no such key")
    assert not (folder / "played").exists()


@pytest.mark.parametrize("options", [[], ["--log-file", "my.log"]])
def test_what_the_last_training_found_is_read_from_the_log_of_this_procfile(train, folder, options):
    if not options:
        write(DA3C, **{"relaax-parameter-server": {"--checkpoint-dir": "checkpoints"}})
    (folder / (options or ["log"])[-1]).write_text("doubtful: the reward is large\n")
    assert train("--check", *options) == (
        0,
        "doubtful: in the last training: the reward is large\nnothing is wrong, but see above\n",
    )


def test_a_line_that_names_no_command_is_refused_by_its_number(train, folder):
    (folder / "Procfile").write_text(f"# mine\n\n{LINES}board tensorboard --logdir x\n")
    status, said = train("--check")
    assert status == 2
    assert "Procfile: line 6 must be 'name: command', is 'board tensorboard --logdir x'" in said


def test_a_configuration_is_no_procfile(train):
    status, said = train("my.yaml")
    assert status == 2
    assert "my.yaml is a configuration, and no Procfile: give the Procfile whose lines name" in said


@pytest.mark.parametrize(
    ("counts", "mistake"),
    [
        ("envs=4", "--concurrency: the Procfile has no 'envs'; it has ps, rlx, env"),
        ("ps=2", "--concurrency: ps runs relaax-parameter-server, of which each needs a line"),
    ],
)
def test_copies_that_cannot_be_are_refused_by_a_check(train, counts, mistake):
    status, said = train("--check", "--concurrency", counts)
    assert status == 2
    assert mistake in said


def test_a_missing_program_is_refused_unless_its_line_is_left_out(train, folder):
    (folder / "play.py").unlink()
    refused = (2, "relaax-train: error: env: there is no file play.py\n")
    assert train("--check") == train() == refused
    assert train("--check", "--concurrency", "env=0") == (0, "nothing is wrong\n")


def test_copies_of_a_server_whose_address_no_line_has_are_doubtful(train, folder):
    assert train("--check", "--concurrency", "rlx=2,env=4") == (0, "nothing is wrong\n")
    (folder / "Procfile").write_text(LINES.replace(" --rlx-server localhost:7001", ""))
    status, said = train("--check", "--concurrency", "rlx=2,env=4")
    assert status == 0
    assert "doubtful: no other line has the address of rlx, port 7001: copies have" in said


def test_ctrl_c_before_anything_was_started_is_a_status(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("relaax.launcher.main.main", interrupted)
    assert run_train() == 130


def test_the_version_is_shown(train):
    assert train("--version") == (0, f"relaax-train {relaax.__version__}\n")
