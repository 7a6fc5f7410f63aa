"""What a training costs that is killed at 60% and started again: SAC on Pendulum-v1.

    python benchmarks/resume.py --seeds 1 2 3

Each seed is trained three times in one process (``relaax-train --serial``): without a break, killed
with SIGKILL and started again with the stored steps that its learner has saved, and the same with
``--save-replay: false``, so that the replay begins empty. The table has the mean return of the
training's episodes: of the last ``EPISODES`` before the kill, of the first ones after it, and of
the last ones of the training. Actions are those that explore. As TensorBoard shows it, what came
after the last checkpoint is taken back.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml
from tensorboard.backend.event_processing import event_accumulator  # type: ignore[import-untyped]

REPOSITORY = Path(__file__).parents[1]

#: So many are averaged: 2,000 steps of Pendulum.
EPISODES = 10

#: What is done at the kill.
HOW = {"no break": None, "steps saved": True, "replay empty": False}


def main() -> None:
    arguments = parse()
    print(f"| seed | | before | after | at the end |\n| {' | '.join(['---'] * 5)} |")
    for seed in arguments.seeds:
        for how, saves in HOW.items():
            with tempfile.TemporaryDirectory() as folder:
                training = Training(Path(folder), seed, arguments.steps, saves is not False)
                killed_at = None if saves is None else training.killed_at(0.6 * arguments.steps)
                training.finish()
                before, after, end = training.returns(killed_at or int(0.6 * arguments.steps))
                print(f"| {seed} | {how} | {before:.0f} | {after:.0f} | {end:.0f} |", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=10_000)
    return parser.parse_args()


class Training:
    """One training, in ``folder``."""

    def __init__(self, folder: Path, seed: int, steps: int, saves_replay: bool) -> None:
        self._folder = folder
        config = yaml.safe_load((REPOSITORY / "config" / "sac_pendulum.yaml").read_text())
        server, learner = config["relaax-parameter-server"], config["relaax-learner"]
        server |= self._places("checkpoints") | {"--metrics-dir": str(folder / "metrics")}
        learner |= self._places("learner") | {"--save-replay": saves_replay}
        config["algorithm"] |= {"max_global_step": steps, "seed": seed}
        (folder / "training.yaml").write_text(yaml.safe_dump(config))
        environment = REPOSITORY / "environments" / "OpenAI_Gym" / "main"
        lines = [
            "ps: relaax-parameter-server --config training.yaml",
            "learner: relaax-learner --config training.yaml",
            "rlx: relaax-rlx-server --config training.yaml",
            f"env: python {environment} --rlx-server localhost:1 --env Pendulum-v1 --seed {seed}",
        ]
        (folder / "Procfile").write_text("\n".join(lines) + "\n")

    def _places(self, name: str) -> dict[str, Any]:
        return {"--checkpoint-dir": str(self._folder / name), "--checkpoint-interval": 5.0}

    def killed_at(self, step: float) -> int:
        """Kill it once a checkpoint of ``step`` is there; return the step of the last one."""
        process = self._start()
        while process.poll() is None and self._checkpoint() < step:
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return self._checkpoint()

    def finish(self) -> None:
        """Let it come to its end."""
        if self._start().wait() != 0:
            sys.exit((self._folder / "log").read_text())

    def returns(self, step: int) -> tuple[float, float, float]:
        """Return the means of the episodes before ``step``, after it and at the end."""
        files = event_accumulator.EventAccumulator(
            str(self._folder / "metrics" / "training"), {"scalars": 0}
        )
        scalars = files.Reload().Scalars("episode/reward")
        episodes = [(each.step, each.value) for each in scalars]
        before = [value for at, value in episodes if at <= step]
        after = [value for at, value in episodes if at > step]
        parts = before[-EPISODES:], after[:EPISODES], after[-EPISODES:]
        return statistics.mean(parts[0]), statistics.mean(parts[1]), statistics.mean(parts[2])

    def _start(self) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - a program of our own
                [Path(sys.executable).parent / "relaax-train", "--serial", "Procfile"],
                cwd=self._folder, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            )  # fmt: skip

    def _checkpoint(self) -> int:
        names = [path.stem for path in (self._folder / "checkpoints").glob("cp-*.json")]
        return max((int(name.removeprefix("cp-")) for name in names), default=0)


if __name__ == "__main__":
    main()
