"""An experiment trains, from Python and from its twin in YAML, with policies here and elsewhere."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml
from processes import REPOSITORY, wait_for

from relaax.launcher.run_record import read_record

pytestmark = [pytest.mark.integration, pytest.mark.timeout(280)]

EXAMPLES = REPOSITORY / "examples" / "experiments"
EXAMPLE = EXAMPLES / "cartpole.py"


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run relaax-experiment in a folder to its end."""
    programs = Path(sys.executable).parent
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [programs / "relaax-experiment", *words],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_first_experiment_is_written_and_trains(tmp_path: Path) -> None:
    written = command(tmp_path, "--init", "mine")
    assert written.returncode == 0, written.stderr
    assert "relaax-experiment run experiment.py" in written.stdout
    file = tmp_path / "mine" / "experiment.py"
    file.write_text(file.read_text().replace("15_000", "1_500"))
    ended = command(tmp_path / "mine", "run", "experiment.py")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "the required number of steps is done" in ended.stdout
    population = command(tmp_path / "mine", "show", "population.py")
    assert "type_: vanilla_pbt" in population.stdout, population.stderr
    again = command(tmp_path, "--init", "mine")
    assert "mine is not empty: name a new folder" in again.stderr


def test_a_trial_trains_to_its_end(tmp_path: Path) -> None:
    name = "cartpole-remote"
    shown = command(tmp_path, "show", str(EXAMPLE), "-e", name)
    assert "max_global_step: 60000" in shown.stdout
    twin = tmp_path / "twin.yaml"
    twin.write_text(shown.stdout.replace("60000", "1500").replace("count: 4", "count: 2"))
    ended = command(tmp_path, "run", str(twin), "-f", "one", "--http-port-base", "7400")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "the required number of steps is done" in ended.stdout
    found = re.findall(r"^(\S+) answers operators at (localhost:\d+.*)$", ended.stdout, re.M)
    for_operators = {name: len(addresses.split(" to ")) for name, addresses in found}
    servers = ["default-ps", "default-trainer0", "policy0", "policy1"]
    assert for_operators == {**dict.fromkeys(servers, 1), "actors0": 2}
    place = tmp_path / "training" / "experiments" / name / "one"
    assert command(tmp_path, "show", str(place / "experiment.yaml")).stdout == twin.read_text()
    assert any((place / "policies" / "default" / "checkpoints").iterdir())


def test_a_worker_that_fails_ends_the_run_with_its_own_error(tmp_path: Path) -> None:
    twin = tmp_path / "twin.yaml"
    text = command(tmp_path, "show", str(EXAMPLE), "-e", "cartpole").stdout
    twin.write_text(text.replace("CartPole-v1", "CartPole-v9").replace("count: 4", "count: 1"))
    ended = command(tmp_path, "run", str(twin))
    error = "actors0 ended with status 2: CartPole-v9: Environment version `v9`"
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"relaax-experiment: error: {error}")
    status = command(tmp_path, "status", "-e", "cartpole")
    assert status.returncode == 1
    assert "CartPole-v9: Environment version `v9`" in status.stdout


def test_workers_end_with_the_last_one_that_keeps_their_key_alive(tmp_path: Path) -> None:
    """Also where that is killed; the others train on to the end."""
    twin = tmp_path / "twin.yaml"
    text = command(tmp_path, "show", str(EXAMPLE), "-e", "cartpole").stdout
    begin, _, end = text.partition("actors:\n- count: 4\n")
    first, _, rest = end.partition("trainers:")
    text = f"{begin}actors:\n"
    for key in ("host_key: main", "watch_keys: [main]", ""):
        text += f"- count: 1\n{first}"
        text += f"  worker_info: {{{key}}}\n"
    twin.write_text(f"{text}trainers:{rest}".replace("count: 4", "count: 3"))
    names = ("-e", "cartpole", "-f", "one")
    run = [Path(sys.executable).parent / "relaax-experiment", "run", str(twin), "-f", "one"]
    with subprocess.Popen([*run, "--ignore-worker-error"], cwd=tmp_path, text=True) as running:
        try:
            record = tmp_path / "training/experiments/cartpole/one/run.json"
            wait_for(record.exists, "the start of the run")
            wait_for(lambda: len(read_record(record).workers) == 5, "the start of all workers")
            before = read_record(record).workers
            os.killpg(before["actors0"].pid, signal.SIGKILL)
            wait_for(lambda: read_record(record).workers["actors1"].status is not None, "an end")
            after = read_record(record).workers
            ended = {name for name, worker in after.items() if worker.running() is None}
            assert ended == {"actors0", "actors1"}
            assert running.poll() is None
        finally:
            running.terminate()
    assert "no process keeps main alive, for actors1" in command(tmp_path, "logs", *names).stdout


def test_a_trial_is_seen_and_ended_by_another_shell(tmp_path: Path) -> None:
    names = ("-e", "cartpole", "-f", "one")
    assert "no trial cartpole/one was run" in command(tmp_path, "status", *names).stderr
    programs = Path(sys.executable).parent
    with subprocess.Popen(
        [programs / "relaax-experiment", "run", str(EXAMPLE), *names],
        cwd=tmp_path, stdout=subprocess.DEVNULL,
    ) as run:  # fmt: skip
        try:
            status = wait_for(
                lambda: (
                    (found := command(tmp_path, "status", *names)).returncode == 0
                    and "training: step" in found.stdout
                    and found.stdout
                ),
                "progress",
                120,
            )
            assert {line.split()[0] for line in status.splitlines()[2:]} == {
                "default-ps", "default-trainer0", "actors0",
            }  # fmt: skip
            pid = int(next(line for line in status.splitlines() if "default-ps" in line).split()[2])
            assert psutil.Process(pid).environ()["CUDA_VISIBLE_DEVICES"] == ""
            again = command(tmp_path, "run", str(EXAMPLE), *names)
            assert again.returncode == 2
            assert f"is in use by relaax-experiment run (pid {run.pid} on" in again.stderr
            stopped = command(tmp_path, "stop", *names)
            assert stopped.returncode == 0, stopped.stderr
            assert "cartpole/one ended with status 143" in stopped.stdout
            assert "default-ps        ended with status 0" in stopped.stdout
            assert run.wait(10) == 143
        finally:
            run.terminate()
    assert command(tmp_path, "status", *names).returncode == 3
    lines = command(tmp_path, "logs", *names, "-n", "2", "default-ps").stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["default-ps"] * 2
    nothing = command(tmp_path, "stop", *names)
    assert nothing.returncode == 2
    assert "cartpole/one does not run: it ended with status 143" in nothing.stderr


def test_players_learn_policies_of_their_own(tmp_path: Path) -> None:
    shown = command(tmp_path, "show", str(EXAMPLES / "tictactoe.py"))
    twin = tmp_path / "twin.yaml"
    twin.write_text(shown.stdout.replace("120000", "1500"))
    ended = command(tmp_path, "run", str(twin))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "the required number of steps is done" in ended.stdout
    place = tmp_path / "training" / "experiments" / "tictactoe" / "trial1"
    for player in ("player_1", "player_2"):
        assert any((place / "policies" / player / "checkpoints").iterdir())


def test_the_twin_of_the_atari_example_trains(tmp_path: Path) -> None:
    """With fewer steps of each batch, and less of them: a Pong of a moment."""
    shown = command(tmp_path, "show", str(EXAMPLES / "atari.py"))
    keys = "{episode_len: 8, rollouts_per_batch: 4, passes: 1, max_global_step: 100}"
    twin = tmp_path / "twin.yaml"
    twin.write_text(shown.stdout.replace("type_: mappo", f"type_: mappo\n    args: {keys}"))
    ended = command(tmp_path, "run", str(twin), "-f", "one")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "the required number of steps is done" in ended.stdout
    place = tmp_path / "training" / "experiments" / "example-atari" / "one"
    assert any((place / "policies" / "default" / "checkpoints").iterdir())


def test_buffers_store_what_several_streams_deliver(tmp_path: Path) -> None:
    """Episodes of one agent in turn, and those of two others together, of one actor worker."""
    shown = command(tmp_path, "show", str(EXAMPLES / "simple_spread.py"), "-e", "shared")
    described = yaml.safe_load(shown.stdout)
    (actor,), (trainer,) = described["actors"], described["trainers"]
    actor["sample_streams"] = [
        {"type_": kind, "stream_name": "steps"} for kind in ("NAME_ROUND_ROBIN", "NAME_MULTI_AGENT")
    ]
    (spec,) = actor["agent_specs"]
    actor["agent_specs"] = [
        {**spec, "index_regex": agents, "sample_stream_idx": place, "send_full_trajectory": True}
        for place, agents in enumerate(("agent_0", "agent_[12]"))
    ]
    described["buffers"] = [{"count": 2, "from_sample_stream": "steps", "to_sample_stream": "team"}]
    trainer["trainer"]["args"]["max_global_step"] = 3000
    described["scheduling"]["buffers"] = {"count": 2, "scheduling": {}}
    twin = tmp_path / "twin.yaml"
    twin.write_text(yaml.safe_dump(described))
    ended = command(tmp_path, "run", str(twin))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    taken = [
        int(steps.replace(",", ""))
        for steps in re.findall(r"stopped; ([\d,]+) steps of environments", ended.stdout)
    ]
    assert sum(taken) >= 3000
    assert min(taken) >= 200  # of the one agent, half of the games
    assert "were delivered to replay servers, 0 of them were lost" in ended.stdout
