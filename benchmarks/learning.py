"""Return against environment steps and seconds, beside Stable-Baselines3's PPO in the same run.

    make install-benchmarks                 # Stable-Baselines3, PyTorch, Box2D, MuJoCo
    python benchmarks/learning.py           # all but the Atari games, 3 seeds; takes hours
    python benchmarks/learning.py --environments pendulum --seeds 1 --baselines none
    python benchmarks/learning.py --environments boxing --seeds 1
    python benchmarks/learning.py --read one.json another.json      # trainings of earlier runs

RELAAX runs the configuration in config/ of each environment with servers and environments in
processes of their own, connected over TCP. The clock starts with the environments, when the servers
are up. An episode counts with the most steps that can have been taken when it ended, those on
their way to an update included. Stable-Baselines3 runs in one process, with the clock around
``learn``, and the settings of RL Baselines3 Zoo.

A training is cut at the ``max_global_step`` of the configuration, and after the time that
``learning_cases.py`` gives to its environment, or ``--seconds``. Returns are means of the last 100
episodes of the training itself, so with actions that are drawn from the policy. The table compares
both at the steps and at the seconds that all of their trainings have reached, and at a quarter.
"""

import argparse
import importlib.util
import itertools
import json
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from curves import EPISODES, Curve, Episode, curve_of, points_of
from launch import workers_of
from learning_cases import CASES
from learning_table import table
from processes import end_on_sigterm, running
from relaax_runs import change_of, relaax_episodes
from report import RESULTS, Results, add_json, parser_of

#: Programs, as the table and the plot name them.
OURS, PPO = "RELAAX", "PPO (SB3)"

#: What is trained on by default.
WITHOUT_ATARI = [name for name, case in CASES.items() if not case.is_atari]

#: A line of progress is printed so often.
PROGRESS_S = 15.0


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    baseline_trains = "ppo" in arguments.baselines and not arguments.read
    if baseline_trains and importlib.util.find_spec("stable_baselines3") is None:
        sys.exit(
            "Stable-Baselines3 is not installed: run `make install-benchmarks`, "
            "or give --baselines none to run RELAAX alone"
        )
    results = Results(arguments.json)
    curves = []
    for curve in earlier(arguments.read) if arguments.read else trainings(arguments):
        curves.append(curve)
        results.add(curve)
    print(f"\n{table(curves)}")
    plot(curves, arguments.plot)
    results.close()


def parse() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--environments", nargs="+", choices=CASES, default=WITHOUT_ATARI,
                        metavar="NAME", help=f"of {', '.join(CASES)} (default: all but the "
                        "Atari games)")  # fmt: skip
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], metavar="N",
                        help="default 1 2 3")  # fmt: skip
    parser.add_argument("--seconds", type=float, metavar="S",
                        help="most that one training takes (default: that of its environment, "
                        "60 to 1800)")  # fmt: skip
    parser.add_argument("--baseline-seconds", type=float, metavar="S",
                        help="most that one training of PPO takes (default: as RELAAX's)"
                        )  # fmt: skip
    parser.add_argument("--baselines", choices=("ppo", "none"), default="ppo",
                        help="none runs RELAAX alone")  # fmt: skip
    parser.add_argument("--threads", type=int, metavar="T",
                        help="of PyTorch (default: 1, and 2 for images, which was faster on two "
                        "cores)")  # fmt: skip
    parser.add_argument("--workers", type=workers_of, metavar="W",
                        help="of the RLX server: connection, auto or a number (default: that of "
                        "the configuration)")  # fmt: skip
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", dest="changes",
                        type=change_of, help="of all configurations' algorithm sections, in YAML"
                        )  # fmt: skip
    parser.add_argument("--read", type=Path, nargs="+", default=[], metavar="FILE",
                        help="compare the trainings that earlier runs wrote to these JSON files, "
                        "and train on nothing")  # fmt: skip
    parser.add_argument("--plot", type=Path, default=RESULTS / "learning.png",
                        help="default %(default)s")  # fmt: skip
    add_json(parser, "learning")
    return parser.parse_args()


def earlier(paths: Iterable[Path]) -> list[Curve]:
    """Return the trainings in files that runs of this program have written."""
    return [curve_of(row) for path in paths for row in json.loads(path.read_text())]


def trainings(arguments: argparse.Namespace) -> Iterator[Curve]:
    """Run all trainings, both programs in turn."""
    programs = (OURS, PPO) if "ppo" in arguments.baselines else (OURS,)
    for name, seed, program in itertools.product(arguments.environments, arguments.seeds, programs):
        yield train(name, program, seed, arguments)


def train(name: str, program: str, seed: int, arguments: argparse.Namespace) -> Curve:
    """Run one training, and print how it goes."""
    run = relaax_episodes if program == OURS else ppo_episodes
    most_seconds = arguments.seconds or CASES[name].seconds
    if program == PPO:
        most_seconds = arguments.baseline_seconds or most_seconds
    label = f"{name}, {program}, seed {seed}"
    episodes: list[Episode] = []
    reached, shown_s = (0, 0.0), 0.0
    for steps, seconds, ended in run(name, seed, most_seconds, arguments):
        reached = steps, seconds
        episodes += ended
        if seconds >= shown_s + PROGRESS_S:
            shown_s = seconds
            print(progress(label, reached, episodes), flush=True)
    print(progress(label, reached, episodes), "at the end", flush=True)
    return Curve(name, program, seed, *reached, points_of(episodes))


def progress(label: str, reached: tuple[int, float], episodes: list[Episode]) -> str:
    latest = [episode.reward for episode in episodes[-EPISODES:]]
    mean = f"{statistics.fmean(latest):9.2f}" if latest else f"{'-':>9}"
    return f"{label}: {reached[0]:>10,} steps, {reached[1]:>5.0f} s, return {mean}"


def ppo_episodes(
    name: str, seed: int, most_seconds: float, arguments: argparse.Namespace
) -> Iterator[tuple[int, float, list[Episode]]]:
    """Train with Stable-Baselines3; yield steps, seconds and what has ended then."""
    command = [
        sys.executable, Path(__file__).parent / "learning_baselines.py", name, "--seed", str(seed),
        "--seconds", str(most_seconds),
    ]  # fmt: skip
    if arguments.threads:
        command += ["--threads", str(arguments.threads)]
    with running(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None  # noqa: S101 - for mypy
        for line in process.stdout:
            if not line.startswith(b"{"):
                continue
            found = json.loads(line)
            ended = [] if found["reward"] is None else [Episode(**found)]
            yield found["steps"], found["seconds"], ended
        process.wait()
    if process.returncode != 0:
        sys.exit("PPO of Stable-Baselines3 has failed; its messages are above")


def plot(curves: list[Curve], path: Path) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        print("matplotlib is not installed: there is no plot")
        return
    from learning_plot import draw

    draw(curves, path)
    print(f"\nplot in {path}")


if __name__ == "__main__":
    main()
