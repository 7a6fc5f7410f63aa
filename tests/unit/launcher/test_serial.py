"""Which Procfiles can be run in one process, and what the others are refused with."""

from pathlib import Path

import pytest
from processes import REPOSITORY

from relaax.errors import ConfigurationError
from relaax.launcher.serial import one_process

SERVERS = """\
ps: exec relaax-parameter-server --config my.yaml
rlx: A=1 relaax-rlx-server --config my.yaml --workers 2
"""
ENVIRONMENT = "env: exec python play.py --rlx-server localhost:7001 --count 2\n"


def procfile(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "Procfile"
    path.write_text(text)
    return path


def line_of(path: Path) -> str:
    return one_process(path).line


def test_servers_and_environment_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text("algorithm: {name: da3c, action_size: 2, state_size: [4]}")
    text = f"{SERVERS}tb: tensorboard --logdir metrics\n{ENVIRONMENT}"
    processes = one_process(procfile(tmp_path, text), ["algorithm.action_size=3"]).parts()
    assert processes.servers["relaax-rlx-server"].options.workers == 2
    for name in ("relaax-parameter-server", "relaax-rlx-server"):
        assert processes.servers[name].algorithm.parameters["action_size"] == 3
    assert processes.line == "env"
    assert processes.environment.arguments == ["--rlx-server", "localhost:7001", "--count", "2"]


def test_a_program_with_the_address_in_its_code_is_run_where_no_line_is_told_one(tmp_path: Path):
    text = f"{SERVERS}tb: tensorboard --logdir x\nmine: exec python my_simulator.py\n"
    assert line_of(procfile(tmp_path, text)) == "mine"
    assert line_of(procfile(tmp_path, text + ENVIRONMENT)) == "env"


@pytest.mark.parametrize("folder", [".", "Procfiles"])
def test_the_procfile_of_a_yaml_file_is_found(tmp_path: Path, folder: str) -> None:
    config = tmp_path if folder == "." else tmp_path / "config"
    for directory in (config, tmp_path / folder):
        directory.mkdir(exist_ok=True)
    (tmp_path / folder / "my.Procfile").write_text(SERVERS + ENVIRONMENT)
    assert line_of(config / "my.yaml") == "env"


def test_a_procfile_of_servers_alone_is_passed_over_for_one_with_an_environment(tmp_path: Path):
    for folder, text in ("config", SERVERS), ("Procfiles", SERVERS + ENVIRONMENT):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "my.Procfile").write_text(text)
    assert line_of(tmp_path / "config" / "my.yaml") == "env"


def test_each_procfile_that_names_a_yaml_file_is_refused_with_its_reason(tmp_path: Path):
    for folder, text in ("config", SERVERS), ("Procfiles", ENVIRONMENT + "# of my.yaml\n"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "my.Procfile").write_text(text)
    reasons = "config/my.Procfile has no environment.*Procfiles/my.Procfile has no line with"
    with pytest.raises(ConfigurationError, match=reasons):
        one_process(tmp_path / "config" / "my.yaml")


#: What no Procfile of this repository runs in one process: servers alone, a configuration to copy,
#: replay servers, and two learners.
WITHOUT_ENVIRONMENT = {
    "da3c_gym_boxing.yaml",
    "da3c_lab_demo.yaml",
    "gorila_cartpole.yaml",
    "starter_continuous.yaml",
    "starter_discrete.yaml",
    "sac_pendulum_shards.yaml",
}


@pytest.mark.parametrize("path", sorted(REPOSITORY.glob("config/*.yaml")), ids=lambda p: p.name)
def test_a_yaml_file_of_this_repository_leads_to_its_environment(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(REPOSITORY)  # Procfiles name programs from there
    if path.name in WITHOUT_ENVIRONMENT:
        with pytest.raises(ConfigurationError):
            one_process(path)
    else:
        assert all(path.name in server.text for server in one_process(path).servers)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (SERVERS, "has no environment: a line 'env: python FILE'"),
        (ENVIRONMENT, "has no line with relaax-parameter-server"),
        (SERVERS.splitlines()[0] + "\n" + ENVIRONMENT, "has no line with relaax-rlx-server"),
        (
            SERVERS + "again: relaax-rlx-server --config my.yaml\n" + ENVIRONMENT,
            "again: a second relaax-rlx-server: one process has one",
        ),
        (SERVERS + "actor: relaax-actor my.yaml --env E\n", "its environment connects to no"),
        (SERVERS + "i: relaax-inference-server --config my.yaml\n", "the worker has the policy"),
        (SERVERS + "r: relaax-replay-server --config my.yaml\n", "the learner has the replay"),
        (SERVERS + "env: python 'play.py --rlx-server a:1\n", "No closing quotation"),
        (SERVERS + "tb: python board.py\nenv: python play.py\n", "which of tb, env plays"),
    ],
)
def test_what_one_process_cannot_run_is_refused(tmp_path: Path, text: str, refusal: str) -> None:
    with pytest.raises(ConfigurationError, match=refusal.replace("...", r"\.\.\.")):
        one_process(procfile(tmp_path, text))


def test_a_yaml_file_that_no_procfile_names_is_refused(tmp_path: Path) -> None:
    procfile(tmp_path, SERVERS + ENVIRONMENT)
    with pytest.raises(ConfigurationError, match=r"no Procfile beside .*other.yaml names it"):
        one_process(tmp_path / "other.yaml")


def test_a_procfile_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read .*nowhere"):
        one_process(tmp_path / "nowhere")
