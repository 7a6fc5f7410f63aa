"""Trainings of RELAAX: real servers and environments, connected over TCP."""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from launch import CONNECTION, REPOSITORY, Launch, Workers, option_for
from processes import running
from servers import running_servers, temporary_directory
from steps import dropped_rollouts, global_step

from relaax.configuration.yaml_reader import read_yaml

ENVIRONMENTS = REPOSITORY / "environments" / "OpenAI_Gym"
BOXING_ID = "ALE/Boxing-v5"

#: A key of the algorithm's section, its parents before it, and its value.
Change = tuple[list[str], Any]


@dataclass(frozen=True)
class Trained:
    """What one training took."""

    program: str
    seed: int
    seconds: float
    steps: int
    reached: bool
    #: Steps of dropped rollouts.
    dropped: int = 0


@dataclass(frozen=True)
class Rate:
    """How fast one training went."""

    program: str
    steps_per_s: float
    #: From the first update that was measured to the last.
    seconds: float
    #: The part of all steps that was in dropped rollouts.
    dropped: float = 0.0


def configuration(arguments: argparse.Namespace) -> tuple[dict[str, Any], Workers]:
    """Return the algorithm's section with what ``--set`` changes, and the RLX server's workers."""
    shipped = read_yaml(arguments.config)
    section = {
        key: value for key, value in shipped["algorithm"].items() if key not in ("path", "name")
    }
    named = shipped["algorithm"].get("name") or Path(shipped["algorithm"]["path"]).name
    section["path"] = str(REPOSITORY / "algorithms" / named)
    for (*parents, key), value in arguments.changes:
        place = section
        for parent in parents:
            place = place.setdefault(parent, {})
        place[key] = value
    workers = arguments.workers or shipped["relaax-rlx-server"].get("--workers", CONNECTION)
    return section, workers


def change_of(text: str) -> Change:
    """Read ``passes=1`` or ``RMSProp.epsilon=1e-4``; PyYAML takes the latter's value for a text."""
    key, is_there, value_text = text.partition("=")
    if not is_there:
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, is {text!r}")
    value = yaml.safe_load(value_text)
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    return key.split("."), value


def train_relaax(seed: int, arguments: argparse.Namespace) -> Trained:
    section, workers = configuration(arguments)
    with temporary_directory() as name:
        directory = Path(name)
        metrics = directory / "metrics"
        options = {"goal-return": arguments.goal, "metrics-dir": str(metrics)}
        with running_servers(
            directory, {**section, "seed": seed}, launch_with(workers, seed), options
        ) as servers:
            began = time.monotonic()
            with environments(
                servers.rlx_server_url, "CartPole-v1", arguments.per_connection, seed
            ) as played:
                log = directory / "relaax-parameter-server.log"
                wait_for_end(log, servers.parameter_server, played)
                seconds = time.monotonic() - began
        said = log.read_text()
        return Trained(
            f"RELAAX DA3C, {workers}",
            seed,
            seconds,
            steps_at_the_end(said),
            reached="has reached its goal" in said,
            dropped=dropped_rollouts(metrics) * section["episode_len"],
        )


def launch_with(workers: Workers, seed: int) -> Launch:
    """Return a launch whose workers draw the same random numbers in each run of ``seed``."""
    return Launch(options={**option_for(workers), "seed": seed})


def steps_at_the_end(log: str) -> int:
    """Return the last global step that a parameter server's log says; RuntimeError without one."""
    said = re.findall(r": global step ([\d,]+);", log)
    if not said:
        raise RuntimeError(f"the parameter server has failed; it said:\n{log}")
    return int(said[-1].replace(",", ""))


def wait_for_end(
    log: Path, parameter_server: subprocess.Popen[bytes], played: subprocess.Popen[bytes]
) -> None:
    """Wait until the parameter server reports how the training ended."""
    while parameter_server.poll() is None and "global step " not in log.read_text():
        if played.poll() not in (None, 0):
            raise RuntimeError("the environments have failed; their messages are above")
        time.sleep(0.05)


@contextlib.contextmanager
def environments(
    url: str,
    env: str,
    per_connection: int,
    seed: int,
    count: int = 8,
    env_kwargs: dict[str, Any] | None = None,
    options: Sequence[str] = (),
    stdout: int = subprocess.DEVNULL,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run so many environments, on connections of ``per_connection`` each.

    Modules of this folder may be named in ``env``; ``options`` are more of the program's.
    """
    command = [
        sys.executable, ENVIRONMENTS / "main", "--rlx-server", url, "--env", env, "--seed",
        str(seed), "--count", str(count), "--per-connection", str(per_connection),
        "--env-kwargs", json.dumps(env_kwargs or {}), *options,
    ]  # fmt: skip
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with running(command, stdout=stdout, env=variables) as process:
        yield process


def relaax_boxing_rate(
    variant: str, changes: dict[str, Any], arguments: argparse.Namespace
) -> Rate:
    section, workers = configuration(arguments)
    section.update(changes)
    with temporary_directory() as name:
        metrics = Path(name) / "metrics"
        launch, options = Launch(options=option_for(workers)), {"metrics-dir": str(metrics)}
        with (
            running_servers(Path(name), section, launch, options) as servers,
            global_step(servers.parameter_server_url) as step,
            environments(servers.rlx_server_url, BOXING_ID, arguments.per_connection, 1),
        ):
            step.at_next_change()
            time.sleep(arguments.warm_up)
            before = step.at_next_change()
            time.sleep(arguments.seconds)
            after = step.at_next_change()
        dropped = dropped_rollouts(metrics, before.wall_s, after.wall_s) * section["episode_len"]
    seconds, steps = after.at_s - before.at_s, after.steps - before.steps
    return Rate(f"RELAAX DA3C, {variant}", steps / seconds, seconds, dropped / steps)
