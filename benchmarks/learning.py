"""Return against environment steps and seconds, beside Stable-Baselines3 in the same run.

    make install-benchmarks                 # Stable-Baselines3, PyTorch, Box2D, MuJoCo
    python benchmarks/learning.py           # all but the Atari games, 3 seeds; takes hours
    python benchmarks/learning.py --environments pendulum --seeds 1 --baselines none
    python benchmarks/learning.py --environments sac_pendulum sac_halfcheetah
    python benchmarks/learning.py --environments boxing --seeds 1
    python benchmarks/learning.py --read one.json another.json      # trainings of earlier runs

RELAAX runs the configuration in config/ of each environment with servers, its learner if it has
one, and environments in processes of their own, connected over TCP. The clock starts with the
environments, when the servers are up. An episode counts with the most steps that can have been
taken when it ended, those included that are still to be learnt from, delivered or counted.
Stable-Baselines3 runs the same algorithm in one process, with the clock around ``learn`` and the
settings of RL Baselines3 Zoo; DA3C, which it does not have, is compared with its PPO.

A training is cut at the ``max_global_step`` of the configuration, and after the time that
``learning_cases.py`` gives to its environment, or ``--seconds``. Returns are means of the last 100
episodes of the training itself, so with actions that explore; of the last 10 for the algorithms
that learn from few steps. What these have learnt in the end is evaluated in 100 more episodes, with
actions that are not drawn, and the clock stopped. The table compares both programs at the steps and
at the seconds that all of their trainings have reached, and at a quarter.
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
from typing import Any

from curves import Curve, Episode, Progress, curve_of, points_of
from launch import workers_of
from learning_cases import CASES, Case
from learning_runs import relaax_episodes
from learning_table import table
from processes import end_on_sigterm, running
from relaax_runs import change_of
from report import RESULTS, Results, add_json, parser_of

#: RELAAX, as the table and the plot name it.
OURS = "RELAAX"

#: What is trained on by default.
WITHOUT_ATARI = [name for name, case in CASES.items() if not case.is_atari]

#: A line of progress is printed so often.
PROGRESS_S = 15.0


def main() -> None:
    arguments = parse()
    end_on_sigterm()
    baseline_trains = arguments.baselines != "none" and not arguments.read
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
    parser.add_argument("--steps", type=int, metavar="N",
                        help="most that one training takes (default: max_global_step of its "
                        "configuration)")  # fmt: skip
    parser.add_argument("--seconds", type=float, metavar="S",
                        help="most that one training takes (default: that of its environment, "
                        "60 to 1800)")  # fmt: skip
    parser.add_argument("--baseline-seconds", type=float, metavar="S",
                        help="most that one training of Stable-Baselines3 takes (default: as "
                        "RELAAX's)")  # fmt: skip
    parser.add_argument("--baselines", choices=("sb3", "none"), default="sb3",
                        help="none runs RELAAX alone")  # fmt: skip
    parser.add_argument("--evaluation-episodes", type=int, metavar="N",
                        help="with actions that are not drawn, at the end (default: 100 of what "
                        "has a learner, and 0 else)")  # fmt: skip
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
    for name, seed in itertools.product(arguments.environments, arguments.seeds):
        yield train(name, OURS, seed, arguments)
        if arguments.baselines != "none":
            yield train(name, baseline_of(CASES[name]), seed, arguments)


def baseline_of(case: Case) -> str:
    """Return Stable-Baselines3's algorithm, as the table and the plot name it."""
    return f"{case.baseline.algorithm} (SB3)"


def train(name: str, program: str, seed: int, arguments: argparse.Namespace) -> Curve:
    """Run one training, and print how it goes."""
    run = relaax_episodes if program == OURS else baseline_episodes
    case = CASES[name]
    most_seconds = arguments.seconds or case.seconds
    if program != OURS:
        most_seconds = arguments.baseline_seconds or most_seconds
    label = f"{name}, {program}, seed {seed}"
    episodes: list[Episode] = []
    reached, shown_s = Progress(0, 0.0, []), 0.0
    for reached in run(name, seed, most_seconds, arguments):
        episodes += reached.ended
        if reached.seconds >= shown_s + PROGRESS_S:
            shown_s = reached.seconds
            print(as_line(label, reached, episodes[-case.episodes :]), flush=True)
    print(as_line(label, reached, episodes[-case.episodes :]), "at the end", flush=True)
    points = points_of(episodes, case.episodes)
    return Curve(name, program, seed, reached.steps, reached.seconds, points, reached.evaluation)


def as_line(label: str, reached: Progress, latest: list[Episode]) -> str:
    mean = f"{statistics.fmean(each.reward for each in latest):9.2f}" if latest else f"{'-':>9}"
    line = f"{label}: {reached.steps:>10,} steps, {reached.seconds:>5.0f} s, return {mean}"
    return line if reached.evaluation is None else f"{line}, evaluated {reached.evaluation:9.2f}"


def baseline_episodes(
    name: str, seed: int, most_seconds: float, arguments: argparse.Namespace
) -> Iterator[Progress]:
    """Train with Stable-Baselines3; yield how far it is, and what has ended then."""
    command = [
        sys.executable, Path(__file__).parent / "learning_baselines.py", name, "--seed", str(seed),
        "--seconds", str(most_seconds),
    ]  # fmt: skip
    for option in ("steps", "threads", "evaluation_episodes"):
        if (value := getattr(arguments, option)) is not None:
            command += [f"--{option.replace('_', '-')}", str(value)]
    with running(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None  # noqa: S101 - for mypy
        for line in process.stdout:
            if line.startswith(b"{"):
                yield progress_of(json.loads(line))
        process.wait()
    if process.returncode != 0:
        sys.exit("Stable-Baselines3 has failed; its messages are above")


def progress_of(found: dict[str, Any]) -> Progress:
    """Return what a line of ``learning_baselines.py`` says."""
    steps, seconds, reward = found["steps"], found["seconds"], found["reward"]
    ended = [] if reward is None else [Episode(steps, seconds, reward)]
    return Progress(steps, seconds, ended, found["evaluation"])


def plot(curves: list[Curve], path: Path) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        print("matplotlib is not installed: there is no plot")
        return
    from learning_plot import draw

    draw(curves, path)
    print(f"\nplot in {path}")


if __name__ == "__main__":
    main()
