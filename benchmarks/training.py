"""Whole trainings, beside Stable-Baselines3 on the same environments in the same run.

    make install-benchmarks                   # Stable-Baselines3 and PyTorch
    python benchmarks/training.py cartpole    # seconds and steps to a mean return of 475, 5 seeds
    python benchmarks/training.py boxing      # agent steps a second on ALE/Boxing-v5
    python benchmarks/training.py random      # the mean return of random actions on ALE/Boxing-v5

CartPole-v1: RELAAX runs config/da3c_cartpole_fast.yaml, servers and environments in processes of
their own, connected over TCP; the clock starts with the environments, when the servers are up, and
stops when the parameter server sees the mean return of the last 100 episodes pass 475. Steps are
the global step, which counts those of dropped rollouts too; ``dropped`` is how many these are.
Stable-Baselines3 runs in one process, with the clock around ``learn``, with the hyperparameters of
RL Baselines3 Zoo; PPO's learning rate and clip range fall within the Zoo's 100,000 steps, and stay
at a tenth from there on.

ALE/Boxing-v5: eight games in all cases, learning, for ``--seconds`` after ``--warm-up``; the clock
starts and stops at an update. A2C learns from each step once and is compared with RELAAX doing so;
PPO and config/da3c_ale_boxing.yaml make four passes. Stable-Baselines3 runs RELAAX's network
(16-32-256), and A2C its own larger one (32-64-64-512) too, with the Zoo's hyperparameters and all
games in one process (``DummyVecEnv``; ``--games subproc`` gives each a process of its own).
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch import REPOSITORY, workers_of
from processes import end_on_sigterm, running
from relaax_runs import (
    BOXING_ID,
    ENVIRONMENTS,
    Rate,
    Trained,
    change_of,
    relaax_boxing_rate,
    train_relaax,
)
from report import Results, add_json, parser_of

GOAL = 475.0

#: What baselines are compared with: A2C learns from each step once, PPO several times.
BOXING: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "1 pass": ({"passes": 1, "policy_clip": None, "episode_len": 20}, ("A2C", "A2C-own-network")),
    "as configured": ({}, ("PPO",)),
}


@dataclass(frozen=True)
class RandomPolicy:
    """What uniformly random actions earn."""

    episodes: int
    mean_return: float
    standard_error: float


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    if arguments.what != "random":
        require_baselines(arguments.baselines)
    results = Results(arguments.json)
    run: Callable[[argparse.Namespace, Results], None] = {
        "cartpole": cartpole,
        "boxing": boxing,
        "random": random_policy,
    }[arguments.what]
    run(arguments, results)
    results.close()


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    cart = what.add_parser("cartpole", help="seconds and steps to a mean return on CartPole-v1")
    cart.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    cart.add_argument("--goal", type=float, default=GOAL, help="mean return (default 475)")
    add_common(cart, "da3c_cartpole_fast.yaml", ("A2C", "PPO"))
    box = what.add_parser("boxing", help="agent steps a second on ALE/Boxing-v5")
    box.add_argument("--seconds", type=float, default=30.0, help="for each rate (default 30)")
    box.add_argument("--warm-up", type=float, default=10.0, help="seconds before (default 10)")
    box.add_argument("--games", choices=("dummy", "subproc"), default="dummy",
                     help="of Stable-Baselines3: in one process, or in one each")  # fmt: skip
    add_common(box, "da3c_ale_boxing.yaml", ("A2C", "A2C-own-network", "PPO"))
    rand = what.add_parser("random", help="mean return of random actions on ALE/Boxing-v5")
    rand.add_argument("--episodes", type=int, default=100, help="default 100")
    add_json(rand, "training-random")
    return parser.parse_args()


def add_common(parser: argparse.ArgumentParser, config: str, names: tuple[str, ...]) -> None:
    parser.add_argument("--baselines", nargs="*", choices=names, default=list(names),
                        help="give no name to run RELAAX alone")  # fmt: skip
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        help="of PyTorch (default 2); for small networks 1 may be faster",
    )
    parser.add_argument("--config", type=Path, default=REPOSITORY / "config" / config,
                        help="of RELAAX (default %(default)s)")  # fmt: skip
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", dest="changes",
                        type=change_of, help="of the configuration's algorithm section, in YAML: "
                        "passes=1 policy_clip=null RMSProp.epsilon=1e-4")  # fmt: skip
    parser.add_argument("--workers", type=workers_of, metavar="W",
                        help="of the RLX server: connection, auto or a number (default: that of "
                        "the configuration)")  # fmt: skip
    parser.add_argument("--per-connection", type=int, default=8, metavar="K",
                        help="environments on each connection of RELAAX, of 8 in all (default 8)"
                        )  # fmt: skip
    add_json(parser, f"training-{parser.prog.split()[-1]}")


def require_baselines(names: list[str]) -> None:
    """End with one line when Stable-Baselines3 is asked for and not installed."""
    if names and importlib.util.find_spec("stable_baselines3") is None:
        sys.exit(
            "Stable-Baselines3 is not installed: run `make install-benchmarks`, "
            "or give --baselines without a name to run RELAAX alone"
        )


def cartpole(arguments: argparse.Namespace, results: Results) -> None:
    print(
        f"{'program':<24}{'seed':>6}{'seconds':>10}{'steps':>12}{'steps/s':>10}{'dropped':>9}"
        f"   reached {arguments.goal:g}",
        flush=True,
    )
    rows = []
    for seed in arguments.seeds:
        rows.append(show(train_relaax(seed, arguments)))
        results.add(rows[-1])
        for name in arguments.baselines:
            found = run_alone(
                "cartpole", name, seed=seed, goal=arguments.goal, threads=arguments.threads
            )
            rows.append(show(Trained(f"{name} (SB3)", seed, **found)))
            results.add(rows[-1])
    print()
    for program in dict.fromkeys(row.program for row in rows):
        print(summary(program, [row for row in rows if row.program == program]))


def show(row: Trained) -> Trained:
    rate = row.steps / row.seconds
    print(
        f"{row.program:<24}{row.seed:>6}{row.seconds:>10.1f}{row.steps:>12,}{rate:>10,.0f}"
        f"{row.dropped:>9,}   {'yes' if row.reached else 'no'}",
        flush=True,
    )
    return row


def summary(program: str, rows: list[Trained]) -> str:
    seconds = [row.seconds if row.reached else float("inf") for row in rows]
    return (
        f"{program:<24}median {statistics.median(seconds):.1f} s, "
        f"{statistics.median(row.steps for row in rows):,.0f} steps, "
        f"{sum(row.reached for row in rows)} of {len(rows)} reached it"
    )


def boxing(arguments: argparse.Namespace, results: Results) -> None:
    print(
        f"{'program':<28}{'agent steps/s':>14}{'seconds':>9}{'dropped':>9}{'RELAAX':>9}", flush=True
    )
    for variant, (changes, names) in BOXING.items():
        chosen = [name for name in names if name in arguments.baselines]
        if arguments.baselines and not chosen:
            continue
        ours = relaax_boxing_rate(variant, changes, arguments)
        show_rate(ours, "")
        results.add(ours)
        for name in chosen:
            found = run_alone(
                "boxing",
                name,
                seconds=arguments.seconds,
                warm_up=arguments.warm_up,
                threads=arguments.threads,
                games=arguments.games,
            )
            theirs = Rate(f"{name} (SB3)", **found)
            show_rate(theirs, f"{ours.steps_per_s / theirs.steps_per_s:.1f} x")
            results.add(theirs)


def show_rate(rate: Rate, ratio: str) -> None:
    print(
        f"{rate.program:<28}{rate.steps_per_s:>14,.0f}{rate.seconds:>9.1f}{rate.dropped:>9.0%}"
        f"{ratio:>9}",
        flush=True,
    )


def run_alone(what: str, name: str, **options: Any) -> dict[str, Any]:
    """Run a baseline in a process of its own, so that nothing of another run is left in it."""
    command = [sys.executable, Path(__file__).parent / "baselines.py", what, name]
    for key, value in options.items():
        command += [f"--{key.replace('_', '-')}", str(value)]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        output, errors = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{name} of Stable-Baselines3 has failed:\n{errors.decode()}")
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def random_policy(arguments: argparse.Namespace, results: Results) -> None:
    sys.path.insert(0, str(ENVIRONMENTS))
    from atari import AtariFactory

    game = AtariFactory(BOXING_ID, None, {})()
    returns = [random_return(game, seed) for seed in range(arguments.episodes)]
    spread = statistics.stdev(returns) if len(returns) > 1 else float("nan")
    row = RandomPolicy(
        len(returns), statistics.fmean(returns), standard_error=spread / len(returns) ** 0.5
    )
    print(
        f"random actions on {BOXING_ID}: mean return {row.mean_return:.1f}, standard error "
        f"{row.standard_error:.1f}, {row.episodes} episodes"
    )
    results.add(row)


def random_return(game: Any, seed: int) -> float:
    """Play one episode with uniform actions; ``seed`` is the game's and the actions'."""
    game.reset(seed=seed)
    game.action_space.seed(seed)
    total, is_over = 0.0, False
    while not is_over:
        _, reward, terminated, truncated, _ = game.step(game.action_space.sample())
        total += float(reward)
        is_over = terminated or truncated
    return total


if __name__ == "__main__":
    main()
