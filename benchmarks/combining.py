"""DA3C with 16 workers, whose gradients the parameter server combines in several ways.

    python benchmarks/combining.py                      # 3 seeds of each way, 150,000 steps
    python benchmarks/combining.py --ways none average --seeds 1

In one process: the parameter server's service and 16 agents of config/da3c_cartpole.yaml, each with
a CartPole-v1 of its own. They take a step each in turn, so that between two gradients of an agent
there are those of the 15 others, and the same seed gives the same training. Returns are means of
the last 100 episodes of all agents, whose actions are drawn.
"""

import itertools
import statistics
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium
from launch import REPOSITORY
from report import Results, add_json, parser_of

from relaax.algorithm_base import NullMetrics, NullSaver
from relaax.assembly import Assembly, bundled
from relaax.configuration.yaml_reader import read_yaml
from relaax.server.serial.memory_bridge import MemoryBridge

WORKERS, EPISODES = 16, 100

#: The keys of each way beside the configuration's.
WAYS: dict[str, dict[str, Any]] = {
    "none": {},
    "delay compensation, adaptive": {"combine_gradients": {"delay_compensation": True}},
    "delay compensation, constant 0.04": {
        "combine_gradients": {"delay_compensation": {"strength": 0.04, "adaptive": False}}
    },
    "average of 4": {"combine_gradients": {"average_of": 4}},
    "average of 4, twice the rate": {
        "combine_gradients": {"average_of": 4}, "initial_learning_rate": 2e-3,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Trained:
    """The mean returns of a training after quarters of its steps."""

    way: str
    seed: int
    steps: int
    updates: int
    returns: list[float]


class Builder(bundled("da3c").Builder):  # type: ignore[misc]
    """DA3C's, whose agents share the compiled gradient, which has no state."""

    _method: Any = None

    def method(self, tensors: Any) -> Any:
        """See OnPolicyBuilder."""
        if Builder._method is None:
            Builder._method = super().method(tensors)
        return Builder._method


class Worker:
    """An agent with its environment, which is over and over again reset."""

    def __init__(self, agent: Any, seed: int) -> None:
        self._agent = agent
        self._environment = gymnasium.make("CartPole-v1")
        self._action = agent.act(self._environment.reset(seed=seed)[0])
        self._score = 0.0

    def step(self) -> float | None:
        """Take a step; return the episode's return if it has ended."""
        state, reward, ends, is_cut, _ = self._environment.step(self._action)
        self._score += float(reward)
        if not ends and not is_cut:
            self._action = self._agent.reward_and_act(float(reward), state)
            return None
        if ends:
            self._agent.reward_and_reset(float(reward))
        else:
            self._agent.reward_and_truncate(float(reward), state)
        score, self._score = self._score, 0.0
        self._action = self._agent.act(self._environment.reset()[0])
        return score


def trained(way: str, seed: int, steps: int) -> Trained:
    """Train in one way."""
    shipped = read_yaml(REPOSITORY / "config" / "da3c_cartpole.yaml")["algorithm"]
    section = {key: value for key, value in shipped.items() if key != "path"}
    config = bundled("da3c").Config({**section, **WAYS[way], "seed": seed})
    assembly = Assembly(Builder)
    service = assembly.parameter_server(config, NullSaver(), NullMetrics()).bridge()
    workers = [
        Worker(assembly.agent(config, MemoryBridge(service), number), 1000 * seed + number)
        for number in range(WORKERS)
    ]
    latest, returns = deque[float](maxlen=EPISODES), list[float]()
    for step in range(1, steps // WORKERS + 1):
        latest.extend(score for worker in workers if (score := worker.step()) is not None)
        if step % (steps // WORKERS // 4) == 0:
            returns.append(round(statistics.mean(latest), 1))
    values = service.pull()
    return Trained(way, seed, values.global_t, values.version.number, returns)


def main() -> None:
    """Train, and print a line for each training and for each way."""
    parser = parser_of(__doc__)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="NAME")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N")
    parser.add_argument("--steps", type=int, default=150_000, metavar="N")
    add_json(parser, "combining")
    arguments = parser.parse_args()
    results = Results(arguments.json)
    found: dict[str, list[Trained]] = {way: [] for way in arguments.ways}
    for seed, way in itertools.product(arguments.seeds, arguments.ways):
        found[way].append(trained(way, seed, arguments.steps))
        results.add(found[way][-1])
        print(asdict(found[way][-1]), flush=True)
    for way, trainings in found.items():
        means = zip(*(each.returns for each in trainings), strict=True)
        print(f"{way}: {[round(statistics.mean(each)) for each in means]}", flush=True)
    results.close()


if __name__ == "__main__":
    main()
