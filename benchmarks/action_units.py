"""SAC on Pendulum with its torque in several units, beside random actions.

    python benchmarks/action_units.py

For each unit and seed the shipped configuration trains for 10,000 steps, in one process. The figure
of a training is the mean return of all its episodes.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml
from event_files import EventFiles
from launch import REPOSITORY
from scaled_pendulum import scaled_pendulum
from servers import COMMANDS, temporary_directory

from relaax.configuration.yaml_reader import read_yaml
from relaax.telemetry.metrics import EPISODE_REWARD

#: What stands for torques of -2 and 2.
BOUNDS = {"0.01": (-0.01, 0.01), "2": (-2.0, 2.0), "1000": (-1000.0, 1000.0), "3..7": (3.0, 7.0)}

#: Of a training. A mean at its end is that of so many episodes.
STEPS, EPISODES, EPISODE, LAST = 10_000, 50, 200, 10


def trained(low: float, high: float, seed: int) -> list[float]:
    """Train between these bounds; return the returns of its episodes."""
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]
    with temporary_directory() as name:
        directory = Path(name)
        _write_application(directory, low, high, seed)
        subprocess.run(  # noqa: S603 - a program of our own
            [COMMANDS / "relaax-train", "--serial", "--steps", str(STEPS)],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return [
            value.simple_value
            for event in EventFiles(directory).new()
            for value in event.summary.value
            if value.tag == EPISODE_REWARD
        ]


def _write_application(directory: Path, low: float, high: float, seed: int) -> None:
    shipped = read_yaml(REPOSITORY / "config" / "sac_pendulum.yaml")
    section = {**shipped["algorithm"], "action_low": low, "action_high": high, "seed": seed}
    content = {
        "relaax-parameter-server": {
            "--bind": "localhost:7000",
            "--metrics-dir": "metrics",
            "--log-level": "ERROR",
        },
        "relaax-learner": {"--bind": "localhost:7002", "--parameter-server": "localhost:7000"},
        "relaax-rlx-server": {
            "--bind": "localhost:7001",
            "--parameter-server": "localhost:7000",
            "--learner": "localhost:7002",
        },
        "algorithm": section,
    }
    (directory / "training.yaml").write_text(yaml.safe_dump(content))
    environment = [
        sys.executable, "-m", "relaax.client.gymnasium_runner", "--rlx-server", "localhost:7001",
        "--env", "scaled_pendulum:ScaledPendulum-v1", "--seed", str(seed),
        "--env-kwargs", json.dumps({"low": low, "high": high}),
    ]  # fmt: skip
    servers = ("relaax-parameter-server", "relaax-learner", "relaax-rlx-server")
    lines = [f"{name}: exec {name} --config training.yaml" for name in servers]
    (directory / "Procfile").write_text("\n".join([*lines, f"env: exec {shlex.join(environment)}"]))


def at_random(seed: int) -> Iterator[float]:
    """Act at random; yield the returns of as many episodes."""
    with scaled_pendulum(-2, 2) as environment:
        environment.action_space.seed(seed)
        for episode in range(EPISODES):
            environment.reset(seed=seed + episode)
            actions = (environment.action_space.sample() for _ in range(EPISODE))
            yield sum(float(environment.step(action)[1]) for action in actions)


def main(arguments: argparse.Namespace) -> None:
    """Print a line for each training, and a table at the end."""
    rows: dict[str, list[list[float]]] = {
        "random actions": [list(at_random(1000 * seed)) for seed in arguments.seeds]
    }
    for name in arguments.bounds:
        for seed in arguments.seeds:
            returns = trained(*BOUNDS[name], seed)
            rows.setdefault(name, []).append(returns)
            print(f"{name}, seed {seed}, {len(returns)} episodes: {_row([returns])}", flush=True)
    print("\n| bounds | mean return of the training | of its last ten episodes |")
    print("| --- | --- | --- |")
    for name, found in rows.items():
        ends = [returns[-LAST:] for returns in found]
        print(f"| {name} | {_row(found)} | {_row(ends)} |")


def _row(found: Iterable[list[float]]) -> str:
    return ", ".join(f"{statistics.mean(returns):,.0f}" for returns in found)


def parsed() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--bounds", nargs="+", choices=BOUNDS, default=list(BOUNDS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    return parser.parse_args()


if __name__ == "__main__":
    main(parsed())
