"""SAC on Pendulum with its torque in several units, beside random actions.

    python benchmarks/action_units.py

For each unit and seed a training of 10,000 steps with a learner, one environment and one worker.
The figure of one is the mean return of all episodes of the training.
"""

import argparse
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path

from launch import REPOSITORY
from learning_cases import CASES, Case
from learning_runs import Training
from relaax_runs import configuration
from scaled_pendulum import scaled_pendulum
from servers import temporary_directory

#: What stands for torques of -2 and 2.
BOUNDS = {"0.01": (-0.01, 0.01), "2": (-2.0, 2.0), "1000": (-1000.0, 1000.0), "3..7": (3.0, 7.0)}

#: The last one of a training does not end.
STEPS, EPISODE, EPISODES = 10_000, 200, 49


def trained(low: float, high: float, seed: int, most_seconds: float) -> Iterator[float]:
    """Train between these bounds; yield the returns of its episodes."""
    case = Case(
        "scaled_pendulum:ScaledPendulum-v1",
        "sac_pendulum.yaml",
        CASES["sac_pendulum"].baseline,
        most_seconds,
        environments=1,
        per_connection=1,
        env_kwargs={"low": low, "high": high},
    )
    section, workers = configuration(
        argparse.Namespace(config=REPOSITORY / "config" / case.config, changes=[], workers=None)
    )
    section |= {"action_low": low, "action_high": high, "seed": seed, "max_global_step": STEPS}
    with temporary_directory() as directory:
        training = Training(Path(directory), case, section, workers, is_kept=False)
        for progress in training.run(seed, most_seconds):
            yield from (episode.reward for episode in progress.ended)


def at_random(low: float, high: float, seed: int) -> Iterator[float]:
    """Act at random; yield the returns of as many episodes."""
    with scaled_pendulum(low, high) as environment:
        environment.action_space.seed(seed)
        for episode in range(EPISODES):
            environment.reset(seed=seed + episode)
            yield sum(
                float(environment.step(environment.action_space.sample())[1])
                for _ in range(EPISODE)
            )


def main(arguments: argparse.Namespace) -> None:
    """Print a line for each training, and a table at the end."""
    rows: dict[str, list[float]] = {name: [] for name in arguments.bounds}
    lasts: dict[str, list[float]] = {name: [] for name in arguments.bounds}
    for seed in arguments.seeds:
        for name in arguments.bounds:
            returns = list(trained(*BOUNDS[name], seed, arguments.seconds))
            rows[name].append(statistics.mean(returns))
            lasts[name].append(statistics.mean(returns[-10:]))
            print(
                f"bounds {name}, seed {seed}: {len(returns)} episodes, mean {rows[name][-1]:,.0f}, "
                f"of the last ten {lasts[name][-1]:,.0f}",
                flush=True,
            )
    print("\n| bounds | mean return of the training | of its last ten episodes |")
    print("| --- | --- | --- |")
    for name in arguments.bounds:
        print(f"| {name} | {_row(rows[name])} | {_row(lasts[name])} |")
    randoms = [list(at_random(*BOUNDS["2"], 1000 * seed)) for seed in arguments.seeds]
    ends = (returns[-10:] for returns in randoms)
    whole, last = (_row(map(statistics.mean, each)) for each in (randoms, ends))
    print(f"| random actions | {whole} | {last} |")


def _row(numbers: Iterable[float]) -> str:
    return ", ".join(f"{number:,.0f}" for number in numbers)


def parsed() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--bounds", nargs="+", choices=BOUNDS, default=list(BOUNDS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--seconds", type=float, default=900, help="most that one training takes")
    return parser.parse_args()


if __name__ == "__main__":
    main(parsed())
