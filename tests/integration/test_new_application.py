"""``relaax-new`` and ``relaax-train --serial``: what they write and run, and the wheel's."""

import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest
import yaml
from event_scalars import scalars
from processes import COMMANDS, REPOSITORY, Process, free_port
from programs import pip_finds_packages, skip_without

from relaax.metrics import EPISODE_REWARD

pytestmark = pytest.mark.integration


def new(directory: Path, *flags: str) -> Path:
    subprocess.run(
        [sys.executable, "-m", "relaax.server.launcher.new_application", directory, *flags],
        check=True, capture_output=True,
    )  # fmt: skip
    return directory


def train(directory: Path, *flags: str, command: Path = COMMANDS / "relaax-train") -> Process:
    return Process("train", [str(command), *flags], directory)


def output_at_the_end(training: Process, status: int = 0) -> str:
    try:
        assert training.wait(240) == status, training.output()
    finally:
        training.kill_family()
    assert "Traceback" not in training.output()
    return training.output()


def use_free_ports(directory: Path) -> None:
    for address in ("localhost:7000", "localhost:7001"):
        place = f"127.0.0.1:{free_port()}"
        for name in ("training.yaml", "Procfile"):
            file = directory / name
            file.write_text(file.read_text().replace(address, place))


def mean_returns(output: str) -> list[float]:
    return [float(found) for found in re.findall(r"return (-?[\d.]+)", output)]


@pytest.mark.parametrize("kind", [(), ("--continuous",)], ids=["discrete", "continuous"])
def test_a_new_folder_is_trained_to_its_goal_in_one_process(tmp_path: Path, kind: tuple[str, ...]):
    directory = new(tmp_path / "mine", *kind)
    said = output_at_the_end(train(directory, "--serial"))
    assert "the mean return has reached its goal" in said
    assert list((directory / "training" / "checkpoints").glob("cp-*.json"))


def test_the_test_of_a_new_folder_passes(tmp_path: Path):
    directory = new(tmp_path / "mine")
    subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=directory, check=True, timeout=120)
    assert not (directory / "training").exists()


def test_cartpole_is_learnt_in_one_process_which_starts_no_other(tmp_path: Path):
    directory = new(tmp_path / "cartpole", "--gymnasium", "CartPole-v1")
    file = directory / "training.yaml"
    content = yaml.safe_load(file.read_text())
    content["relaax-parameter-server"]["--goal-return"] = 150
    file.write_text(yaml.safe_dump(content))
    training = train(directory, "--serial", "training.yaml")
    training.says("step [1-9]")
    assert training.children() == []
    said = output_at_the_end(training)
    assert mean_returns(said)[-1] >= 150
    returns = scalars(directory / "training" / "metrics")[EPISODE_REWARD]
    assert mean(value for _, value in returns[:20]) < 75


def test_ctrl_c_saves(tmp_path: Path):
    directory = new(tmp_path / "cartpole", "--gymnasium", "CartPole-v1")
    training = train(directory, "--serial")
    training.says("step [1-9]")
    training.signal(signal.SIGINT)
    assert "stopped by a signal: global step" in output_at_the_end(training, 130)
    assert list((directory / "training" / "checkpoints").glob("cp-*.json"))


IN_TWO_THREADS = """\
from threading import Thread

from environment import main

threads = [Thread(target=main) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_clients_of_several_threads_take_turns_in_one_process(tmp_path: Path):
    directory = new(tmp_path / "mine")
    (directory / "threads.py").write_text(IN_TWO_THREADS)
    procfile = directory / "Procfile"
    procfile.write_text(procfile.read_text().replace("environment.py", "threads.py"))
    said = output_at_the_end(train(directory, "--serial"))
    assert "the mean return has reached its goal" in said
    assert len(re.findall("stopping: .*?: the training is over", said)) == 2


@pytest.mark.parametrize("name", ["ppo_cartpole", "dqn_cartpole"])
def test_a_learner_takes_its_steps_in_the_same_process(tmp_path: Path, name: str):
    for folder in ("config", "algorithms", "environments"):
        (tmp_path / folder).symlink_to(REPOSITORY / folder)
    procfile = REPOSITORY / "Procfiles" / f"{name}.Procfile"
    training = train(tmp_path, "--serial", str(procfile), "--steps", "3000")
    said = output_at_the_end(training)
    assert "as many steps are done as were asked for" in said
    assert list((tmp_path / "training").rglob("cp-*.json"))


def test_a_breakpoint_stops_in_the_environment_the_agent_and_the_parameter_server(tmp_path: Path):
    directory = new(tmp_path / "mine")
    lines = (directory / "environment.py").read_text().splitlines()
    in_environment = 1 + next(i for i, line in enumerate(lines) if "self._steps += 1" in line)
    commands = f"""\
b environment.py:{in_environment}
from relaax.learning.actor import Actor
b Actor.act
from relaax.learning.parameter_service import ParameterService
b ParameterService.synchronize
c
clear 2
c
clear 1
c
q
"""
    said = subprocess.run(
        [sys.executable, "-m", "pdb", "-m", "relaax.server.launcher.main", "--serial"],
        cwd=directory, input=commands, capture_output=True, text=True, check=False, timeout=120,
    ).stdout  # fmt: skip
    for where in ("environment.py", "learning/actor.py", "learning/parameter_service.py"):
        assert re.search(rf"> \S*{where}\(\d+\)", said), said


@pytest.fixture(name="installed", scope="module")
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The commands of a virtual environment in which the wheel alone was installed, by pip."""
    skip_without(pip_finds_packages(), "needs an index of packages for pip, such as PyPI")
    folder = tmp_path_factory.mktemp("wheel")
    commands = folder / "venv" / "bin"
    venv.create(folder / "venv", with_pip=True)
    subprocess.run(
        [commands / "pip", "install", "--quiet", f"{built_wheel(folder)}[environments]"],
        check=True, timeout=600,
    )  # fmt: skip
    yield commands
    shutil.rmtree(folder)  # TensorFlow is large, and pytest keeps what is here


def built_wheel(folder: Path) -> Path:
    """Return a wheel of the files that git would commit."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (REPOSITORY / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "source" / name).write_bytes((REPOSITORY / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", folder, folder / "source"],
        check=True, capture_output=True, timeout=240,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.timeout(1200)  # most of it for pip
def test_the_wheel_trains_cartpole_in_an_empty_folder_with_two_commands(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", f"{installed}{os.pathsep}{os.environ['PATH']}")  # as activate does
    monkeypatch.delenv("PYTHONPATH", raising=False)
    made = subprocess.run(
        ["relaax-new", "cartpole", "--gymnasium", "CartPole-v1"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert "  cd cartpole\n  relaax-train\n" in made
    directory = tmp_path / "cartpole"
    use_free_ports(directory)
    said = output_at_the_end(train(directory, command=installed / "relaax-train"))
    assert "the mean return has reached its goal" in said
    assert str(REPOSITORY) not in said
