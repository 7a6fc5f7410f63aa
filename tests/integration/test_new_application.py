"""``relaax-new`` and ``relaax-train --serial``: what they write and run."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from statistics import mean

import pytest
import yaml
from event_scalars import scalars
from new_folders import new, output_at_the_end, train
from processes import REPOSITORY

from relaax.telemetry.metrics import EPISODE_REWARD

pytestmark = pytest.mark.integration


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
from relaax.acting.actor import Actor
b Actor.act
from relaax.parameters.parameter_store import ParameterStore
b ParameterStore.push
c
clear 2
c
clear 1
c
q
"""
    said = subprocess.run(
        [sys.executable, "-m", "pdb", "-m", "relaax.launcher.main", "--serial"],
        cwd=directory, input=commands, capture_output=True, text=True, check=False, timeout=120,
    ).stdout  # fmt: skip
    for where in ("environment.py", "acting/actor.py", "parameters/parameter_store.py"):
        assert re.search(rf"> \S*{where}\(\d+\)", said), said
