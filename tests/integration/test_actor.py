"""``relaax-actor``: environments and policies in processes of their own, without an RLX server."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from processes import COMMANDS, REPOSITORY, SMALL_SAC, Process, Training, free_port, wait_for
from surreal_page import whole_algorithm

from relaax.parameters import Bridge
from relaax.replay.client.stub import ReplayStub
from relaax.telemetry.kept_counts import KeptCounts

pytestmark = pytest.mark.integration


@pytest.fixture(name="page")
def _page(training: Training) -> dict[str, Any]:
    """The keys of the algorithm that docs/surreal.md shows, which starts without TensorFlow."""
    folder = training.directory / "page"
    folder.mkdir()
    for name, text in whole_algorithm().items():
        (folder / name).write_text(text)
    keys = yaml.safe_load((folder / "training.yaml").read_text())["algorithm"]
    return {**keys, "path": "page", "seed": 1}


def test_sac_trains_without_an_rlx_server_and_all_end_with_status_zero(training: Training):
    training.configure({**SMALL_SAC, "max_global_step": 1500})
    parameter_server = training.start_parameter_server()
    learner = training.start_learner()
    training.start_actors(1, env="Pendulum-v1")
    assert [process.wait(120) for process in training.processes] == [0, 0, 0]
    steps = int(parameter_server.says(r"global step ([\d,]+);")[1].replace(",", ""))
    assert steps >= 1500
    said = learner.says(r"stopped after ([\d,]+) steps of the learner; ([\d,]+) steps of")
    assert int(said[1].replace(",", "")) > 100
    assert "return -" in parameter_server.output()


def test_sac_is_judged_by_its_mode_and_no_step_counts(training: Training, bridge: Bridge):
    training.configure(SMALL_SAC)
    training.start_parameter_server()
    flags = ("--mode", "eval_deterministic", "--episodes", "1")
    actors = training.start_actors(1, *flags, env="Pendulum-v1")
    assert actors.wait(120) == 0
    assert "episodes 1 " in actors.output()
    assert bridge.add(0) == 0


def test_every_step_is_stored_once_and_a_signal_ends_all_actors(
    training: Training, bridge: Bridge, page: dict[str, Any]
):
    training.configure(page)
    training.start_parameter_server()
    training.start_learner()
    actors = training.start_actors(2)
    replay = ReplayStub(training.learner_url)
    wait_for(lambda: replay.stats()["writers"] == 2, "two actors")
    wait_for(lambda: replay.stats()["actions stored"] > 2000, "two thousand steps")
    assert replay.stats()["steps twice"] == 0
    wait_for(lambda: bridge.add(0) > 2000, "two thousand steps counted")
    opened = [KeptCounts.of_process(child.pid) for child in actors.children()]
    kept = [counts for counts in opened if counts is not None]
    assert len(kept) == 2
    actors.signal(signal.SIGTERM)
    assert actors.wait() == 0
    taken, delivered, dropped = np.sum([list(each.totals().values()) for each in kept], axis=0)
    assert 2000 < delivered <= replay.stats()["actions stored"] <= taken
    assert dropped == 0
    replay.close()
    assert actors.output().splitlines()[-1].endswith("stopped")


def test_actors_outlive_a_learner_and_a_parameter_server_that_are_killed(
    training: Training, bridge: Bridge, page: dict[str, Any]
):
    options = {"checkpoint-interval": 1.0}
    training.configure(page, options, learner=options)
    parameter_server = training.start_parameter_server()
    learner = training.start_learner()
    actors = training.start_actors(1, "--fetch-parameter-interval", "3")
    wait_for(lambda: list((training.directory / "learner").glob("cp-*.json")), "a checkpoint")
    wait_for(lambda: list(training.checkpoints.glob("cp-*.json")), "a checkpoint")
    learner.kill()
    parameter_server.kill()
    training.start_parameter_server()
    counted = bridge.add(0)
    before = bridge.pull().info
    training.start_learner()
    wait_for(lambda: bridge.add(0) > counted, "more steps")
    iteration = -1 if before is None else before.iteration
    wait_for(lambda: bridge.pull().info.iteration > iteration, "more learning")
    assert actors.is_running()
    actors.signal(signal.SIGINT)
    assert actors.wait() == 0


def test_an_actor_whose_environment_sends_nan_is_started_again_and_plays_what_is_left(
    training: Training, page: dict[str, Any], tmp_path: Path
):
    training.configure(page)
    training.start_parameter_server()
    kwargs = json.dumps({"how": "nan", "once": str(tmp_path / "once")})
    flags = ("--mode", "eval_stochastic", "--episodes", "5", "--env-kwargs", kwargs)
    env = f"{REPOSITORY / 'tests' / 'faulty_environment.py'}:faulty_cart_pole"
    actors = training.start_actors(1, *flags, env=env)
    assert actors.wait() == 0
    said = actors.output()
    assert "failed (ValueError: the state[0] is nan, it must be finite): its episode is" in said
    assert "episodes 5 " in said


@pytest.mark.parametrize("mode", ["eval_deterministic", "eval_stochastic"])
def test_an_actor_that_is_judged_adds_no_steps(
    training: Training, bridge: Bridge, page: dict[str, Any], mode: str
):
    training.configure(page)
    training.start_parameter_server()
    actors = training.start_actors(1, "--mode", mode, "--episodes", "2")
    assert actors.wait() == 0
    assert "episodes 2 " in actors.output()
    assert bridge.add(0) == 0


def test_an_actor_that_is_judged_records_videos(training: Training, page: dict[str, Any]):
    training.configure(page)
    training.start_parameter_server()
    videos = training.directory / "videos"
    actors = training.start_actors(
        1, "--mode", "eval_deterministic", "--episodes", "5", "--record-video", str(videos),
        "--record-every", "2", "--max-videos", "2",
    )  # fmt: skip
    assert actors.wait() == 0
    files = [file.name for file in sorted(videos.iterdir())]
    assert [re.sub(r".*-episode", "episode", name) for name in files] == [
        "episode-2.mp4",
        "episode-4.mp4",
    ]


def test_an_environment_that_does_not_fit_is_refused_with_both_spaces(
    training: Training, page: dict[str, Any]
):
    training.configure(page)
    actors = training.start_actors(1, env="Pendulum-v1")
    assert actors.wait() == 2
    assert re.search(r"observations of Pendulum-v1 are .*\[3\].* asks for .*\[4\]", actors.output())


def test_an_algorithm_whose_workers_learn_is_refused(training: Training):
    process = training.start_command("relaax-actor", "--env", "CartPole-v1")
    assert process.wait() == 2
    assert "has no learner: its environments connect to relaax-rlx-server" in process.output()


def test_the_algorithm_of_the_page_learns_cartpole(training: Training, page: dict[str, Any]):
    """docs/surreal.md, followed: its files with other ports, and the commands of its Procfile."""
    assert page["path"] == "page"
    training.yaml = training.directory / "page" / "training.yaml"
    text = training.yaml.read_text()
    for port in ("7000", "7002"):
        text = text.replace(f"localhost:{port}", f"127.0.0.1:{free_port()}")
    training.yaml.write_text(text)
    lines = dict(line.split(": exec ") for line in whole_algorithm()["Procfile"].splitlines())
    assert set(lines) == {"ps", "learner", "actor"}
    processes: dict[str, Process] = {}
    for name, command in lines.items():
        program, *flags = command.split()
        flags[flags.index("training.yaml")] = str(training.yaml)
        processes[name] = training.start(name, [str(COMMANDS / program), *flags])
    ends = {name: process.wait(120) for name, process in processes.items()}
    assert ends == dict.fromkeys(lines, 0)
    assert "the mean return has reached its goal" in processes["ps"].output()
    assert all("Traceback" not in process.output() for process in processes.values())
