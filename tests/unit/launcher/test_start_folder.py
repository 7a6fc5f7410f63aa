"""A Procfile is started where its files are; the rest is left to the programs."""

import pytest

from relaax.errors import ConfigurationError
from relaax.launcher.check import require_start_folder
from relaax.launcher.described import described


@pytest.fixture(name="checkout")
def _checkout(tmp_path, monkeypatch):
    """A folder with files, beside the one that is the current one."""
    checkout, elsewhere = tmp_path / "check out", tmp_path / "elsewhere"
    for path in (
        "Procfiles/one.Procfile", "config/one.yaml", "main", "own/main", "play.py",
        "logs/ps.log", "training/health", "secrets/tokens",
    ):  # fmt: skip
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).touch()
    (checkout / "training" / "metrics").mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return checkout


def require(checkout, *commands):
    processes = described({str(number): line for number, line in enumerate(commands)})
    require_start_folder(checkout / "Procfiles" / "one.Procfile", processes)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("server --config config/one.yaml", "config/one.yaml"),
        ("X=1 exec server --config='config/one.yaml'", "config/one.yaml"),
        ("server --auth-token-file secrets/tokens", "secrets/tokens"),
        ("own/main --count 1", "own/main"),
        ("PYTHONPATH=x Y= exec ./own/main --count 1", "./own/main"),
        ("exec python own/main --count 1", "own/main"),
        ("env X=1 /usr/bin/python3.11 -u -O play.py", "play.py"),
    ],
)
def test_a_file_that_is_where_the_procfile_belongs_and_not_here_is_refused(checkout, command, name):
    with pytest.raises(ConfigurationError) as refused:
        require(checkout, "echo", command)
    assert f"names {name}, which is not below this folder, but below {checkout}" in str(
        refused.value
    )
    assert f"cd '{checkout}'" in str(refused.value)


def test_all_is_well_where_it_belongs(checkout, monkeypatch):
    monkeypatch.chdir(checkout)
    require(checkout, "server --config config/one.yaml")


def test_files_of_the_same_names_may_be_here(checkout, tmp_path):
    here = tmp_path / "elsewhere" / "config"
    here.mkdir()
    (here / "one.yaml").touch()
    require(checkout, "server --config config/one.yaml")


@pytest.mark.parametrize(
    "command",
    [
        "server --config config/other.yaml",  # the server says so
        "tensorboard --logdir training/metrics",  # what is written, once it is
        "server --log-file logs/ps.log",  # the same
        "server --log-file=logs/ps.log",
        "own --health-file training/health",
        "server 2>> logs/ps.log",
        "python -m play.py own/main",  # a module, and its argument
        "python -c play.py",
        "server --config",
        "cd .. && server --config config/one.yaml",
        "main --url http://localhost:7001",  # a command, and no path
        "server --config 'config/one.yaml",
        f"echo {'x/' * 5000}",
    ],
)
def test_the_rest_is_left_to_the_programs(checkout, command):
    require(checkout, command)
