"""Whether a slow simulator waits for the service: its steps a second, alone and with a learner.

    python benchmarks/slow_simulator.py
    python benchmarks/slow_simulator.py --clients 16 --step-ms 50 --seconds 60 --rounds 3

Each client has a pendulum of its own whose step takes ``--step-ms``. Alone, actions are drawn at
random; with the service they come from an RLX server, whose worker delivers every step to a learner
of SAC on the same machine, which makes as many updates as it has time for (``updates_per_step:
null``; ``--updates-per-step`` sets a ratio, and then steps wait for updates). Both are measured
one after the other, ``--rounds`` times. ``ratio`` is the rate with the service through the rate
alone. ``delivered`` is the part of the steps that the learner's replay has stored at the end.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import gymnasium
import numpy as np
import yaml
from launch import REPOSITORY, Launch, option_for
from processes import end_on_sigterm
from report import Results, add_json, parser_of
from servers import running_servers, temporary_directory

from relaax.client import Client
from relaax.replay.client.stub import ReplayStub

#: Chooses an action, given the reward of the last step, None at the start, and a state.
Choose = Callable[[float | None, Any], Any]


@dataclass(frozen=True)
class Row:
    """One line of the table; rates are steps and updates a second."""

    clients: int
    step_ms: float
    alone: float
    served: float
    ratio: float
    updates: float
    delivered: float


class Simulator:
    """A pendulum that takes its time; it is played until ``stops`` is set."""

    def __init__(self, seed: int, step_s: float, stops: Event) -> None:
        self._environment = gymnasium.make("Pendulum-v1")
        self._seed = seed
        self._step_s = step_s
        self._stops = stops
        self.steps = 0

    def play(self, choose: Choose, end: Callable[[float, Any], object]) -> None:
        """Play episodes; ``end`` is called with the last reward and state of each."""
        with closing(self._environment):
            seed: int | None = self._seed
            while not self._stops.is_set():
                state, _ = self._environment.reset(seed=seed)
                seed = None
                self._episode(choose, end, state)

    def _episode(self, choose: Choose, end: Callable[[float, Any], object], state: Any) -> None:
        reward: float | None = None
        while not self._stops.is_set():
            action = choose(reward, state)
            time.sleep(self._step_s)
            state, step_reward, _, truncated, _ = self._environment.step(action)
            reward = float(step_reward)
            self.steps += 1
            if truncated:
                end(reward, state)
                return


def play_alone(simulator: Simulator, seed: int) -> None:
    """Play with random actions."""
    random = np.random.default_rng(seed)
    simulator.play(
        lambda reward, state: random.uniform(-2, 2, 1).astype(np.float32),
        lambda reward, state: None,
    )


def play_served(simulator: Simulator, url: str) -> None:
    """Play with the actions of an RLX server."""
    with Client(url, timeout_s=60) as client:

        def choose(reward: float | None, state: Any) -> Any:
            return client.init(state) if reward is None else client.send(reward, state)

        simulator.play(choose, client.truncate)


@contextmanager
def playing(
    arguments: argparse.Namespace, play: Callable[[Simulator, int], None]
) -> Iterator[Callable[[], int]]:
    """Let all clients play; return what counts their steps."""
    stops = Event()
    simulators = [
        Simulator(number, arguments.step_ms / 1000, stops) for number in range(arguments.clients)
    ]
    with ThreadPoolExecutor(arguments.clients) as threads:
        running = [threads.submit(play, each, number) for number, each in enumerate(simulators)]
        try:
            yield lambda: sum(each.steps for each in simulators)
        finally:
            stops.set()
        for each in running:
            each.result()


def rate_of(steps: Callable[[], int], seconds: float) -> float:
    """Return by how many a second ``steps`` grows."""
    first, began = steps(), time.monotonic()
    time.sleep(seconds)
    return (steps() - first) / (time.monotonic() - began)


def alone(arguments: argparse.Namespace) -> float:
    """Return the rate of the clients alone."""
    with playing(arguments, play_alone) as steps:
        time.sleep(1)
        return rate_of(steps, arguments.seconds)


def served(arguments: argparse.Namespace, launch: Launch) -> tuple[float, float, float]:
    """Return rates of steps and of updates with the service, and the part that was delivered."""
    section = yaml.safe_load((REPOSITORY / "config" / "sac_pendulum.yaml").read_text())["algorithm"]
    del section["name"]
    section |= {
        "path": str(REPOSITORY / "algorithms" / "sac"),
        "max_global_step": 1e9,
        "updates_per_step": arguments.updates_per_step,
    }
    with (
        temporary_directory() as directory,
        running_servers(
            Path(directory), section, launch, learner={"nice": arguments.nice}
        ) as servers,
    ):
        learner = yaml.safe_load((Path(directory) / "benchmark.yaml").read_text())
        replay = ReplayStub(learner["relaax-learner"]["--bind"])
        play = partial(_play_numbered, servers.rlx_server_url)
        with closing(replay), playing(arguments, play) as steps:
            time.sleep(arguments.warm_up)
            drawn, began = replay.stats()["all/drawn"], time.monotonic()
            rate = rate_of(steps, arguments.seconds)
            updates = (replay.stats()["all/drawn"] - drawn) / (time.monotonic() - began)
            delivered = replay.stats()["actions stored"] / steps()
    return rate, updates / section.get("batch_size", 256), delivered


def _play_numbered(url: str, simulator: Simulator, number: int) -> None:
    play_served(simulator, url)


def main() -> None:
    """Print a line for each round, and their median."""
    parser = parser_of(__doc__)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--step-ms", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement")
    parser.add_argument("--warm-up", type=float, default=20.0, help="seconds before the service's")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates-per-step", type=float, default=None)
    parser.add_argument("--nice", type=int, default=10, help="of the learner (default 10)")
    add_json(parser, "slow_simulator")
    arguments = parser.parse_args()
    end_on_sigterm()
    results = Results(arguments.json)
    launch = Launch(options=option_for(1))
    print(f"{'alone':>8} {'served':>8} {'ratio':>6} {'updates/s':>9} {'delivered':>9}", flush=True)
    for _ in range(arguments.rounds):
        by_itself = alone(arguments)
        rate, updates, delivered = served(arguments, launch)
        row = Row(
            arguments.clients, arguments.step_ms, by_itself, rate, rate / by_itself, updates,
            delivered,
        )  # fmt: skip
        results.add(row)
        print(
            f"{row.alone:8.1f} {row.served:8.1f} {row.ratio:6.3f} {row.updates:9.1f} "
            f"{row.delivered:9.3f}",
            flush=True,
        )
    results.close()


if __name__ == "__main__":
    main()
