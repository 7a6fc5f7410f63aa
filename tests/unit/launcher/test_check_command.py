"""What ``relaax-train --check`` prints, and that nothing is started without a look."""

import pytest
import yaml

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
