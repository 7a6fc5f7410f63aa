"""Whole trainings, beside Stable-Baselines3 on the same environments in the same run.

    pip install 'relaax[benchmarks]'          # Stable-Baselines3 and PyTorch; a CPU build will do
    python benchmarks/training.py cartpole    # seconds and steps to a mean return of 475, 5 seeds
    python benchmarks/training.py boxing      # agent steps a second on ALE/Boxing-v5

CartPole-v1: RELAAX runs config/da3c_cartpole_fast.yaml, servers and environments in processes of
their own, connected over TCP; the clock starts with the environments, when the servers are up, and
stops when the parameter server sees the mean return of the last 100 episodes pass 475.
Stable-Baselines3 runs in one process, with the clock around ``learn``; PPO with the hyperparameters
that RL Baselines3 Zoo found for this task, A2C with those of the Zoo, eight environments both.

ALE/Boxing-v5: eight games in all cases, learning, for ``--seconds`` after the first update.
Stable-Baselines3 runs its own network (32-64-64-512), RELAAX that of the seed (16-32-256). A2C,
which learns from each step once, is compared with RELAAX doing so; PPO, which makes ten passes,
with config/da3c_ale_boxing.yaml, which makes four.
"""

import argparse
import contextlib
import json
import re
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from servers import REPOSITORY, running_servers

ENVIRONMENTS = REPOSITORY / "environments" / "OpenAI_Gym"
DEFAULT_JSON = Path(__file__).parent / "results" / "training.json"
GOAL = 475.0
#: What each baseline is compared with: A2C learns from each step once, PPO several times (10).
BOXING: dict[str, tuple[str, dict[str, Any]]] = {
    "A2C": ("1 pass", {"passes": 1, "policy_clip": None, "episode_len": 20}),
    "PPO": ("4 passes", {}),
}
#: A training that has not reached its goal by then has failed.
MOST_STEPS = 1_000_000


@dataclass(frozen=True)
class Trained:
    """What one training took."""

    who: str
    seed: int
    seconds: float
    steps: int
    reached: bool


@dataclass(frozen=True)
class Rate:
    """How fast one training went."""

    who: str
    steps_per_s: float


def main() -> None:
    arguments = parse()
    if arguments.alone is not None:
        print(json.dumps(baseline(arguments.alone, arguments.what, arguments)))
        return
    rows: list[Any] = cartpole(arguments) if arguments.what == "cartpole" else boxing(arguments)
    path = arguments.json.with_stem(f"training-{arguments.what}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(row) for row in rows], indent=2))
    print(f"\nwritten to {path}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("cartpole", "boxing"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--seconds", type=float, default=30.0, help="for each rate (default 30)")
    parser.add_argument("--baselines", nargs="*", choices=("A2C", "PPO"), default=["A2C", "PPO"])
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    return parser.parse_args()


def cartpole(arguments: argparse.Namespace) -> list[Trained]:
    print(f"{'who':<22}{'seed':>6}{'seconds':>10}{'steps':>12}{'steps/s':>10}   reached {GOAL:g}")
    rows = []
    for seed in arguments.seeds:
        rows.append(show(train_relaax(seed)))
        for name in arguments.baselines:
            found = run_alone(name, "cartpole", "--seed", str(seed))
            rows.append(show(Trained(f"{name} (SB3)", seed, **found)))
    print()
    for who in dict.fromkeys(row.who for row in rows):
        mine = [row for row in rows if row.who == who]
        seconds = [row.seconds if row.reached else float("inf") for row in mine]
        print(
            f"{who:<22}median {statistics.median(seconds):.1f} s, "
            f"{statistics.median(row.steps for row in mine):,.0f} steps, "
            f"{sum(row.reached for row in mine)} of {len(mine)} reached it"
        )
    return rows


def show(row: Trained) -> Trained:
    rate = row.steps / row.seconds
    print(
        f"{row.who:<22}{row.seed:>6}{row.seconds:>10.1f}{row.steps:>12,}{rate:>10,.0f}"
        f"   {'yes' if row.reached else 'no'}",
        flush=True,
    )
    return row


def train_relaax(seed: int) -> Trained:
    shipped = yaml.safe_load((REPOSITORY / "config" / "da3c_cartpole_fast.yaml").read_text())
    algorithm = {**numbers(shipped["algorithm"]), "seed": seed}
    del algorithm["path"]
    with running_servers(algorithm, "batched", {"goal-return": GOAL}) as servers:
        began = time.monotonic()
        with environments(servers.rlx_server_url, "CartPole-v1", 8, 8, seed):
            log = servers.directory / "relaax-parameter-server.log"
            while servers.parameter_server.poll() is None and "global step " not in said(log):
                time.sleep(0.05)
            seconds = time.monotonic() - began
        (steps,) = re.findall(r": global step ([\d,]+);", said(log))
        is_reached = "has reached its goal" in said(log)
    return Trained("RELAAX DA3C, batched", seed, seconds, int(steps.replace(",", "")), is_reached)


def said(log: Path) -> str:
    return log.read_text()


def numbers(section: dict[str, Any]) -> dict[str, Any]:
    """Read 1e6 as the number that it is; PyYAML takes it for a text."""
    found = {}
    for key, value in section.items():
        if isinstance(value, dict):
            found[key] = numbers(value)
        elif isinstance(value, str) and re.fullmatch(r"[\d.]+e-?\d+", value):
            found[key] = float(value)
        else:
            found[key] = value
    return found


@contextlib.contextmanager
def environments(url: str, env: str, count: int, per_connection: int, seed: int) -> Any:
    process = subprocess.Popen(  # noqa: S603 - our own program
        [
            sys.executable, ENVIRONMENTS / "main", "--rlx-server", url, "--env", env, "--seed",
            str(seed), "--count", str(count), "--per-connection", str(per_connection),
        ],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def boxing(arguments: argparse.Namespace) -> list[Rate]:
    rows = []
    for baseline, (variant, changes) in BOXING.items():
        rate = Rate(f"RELAAX DA3C, {variant}", relaax_boxing_rate(arguments.seconds, changes))
        rows.append(rate)
        print(f"{rate.who:<24}{rate.steps_per_s:>8,.0f} agent steps/s", flush=True)
        if baseline not in arguments.baselines:
            continue
        found = run_alone(baseline, "boxing", "--seconds", str(arguments.seconds))
        rows.append(Rate(f"{baseline} (SB3)", found["steps_per_s"]))
        ratio = rate.steps_per_s / rows[-1].steps_per_s
        print(
            f"{rows[-1].who:<24}{rows[-1].steps_per_s:>8,.0f} agent steps/s; RELAAX {ratio:.1f} x",
            flush=True,
        )
    return rows


def relaax_boxing_rate(seconds: float, changes: dict[str, Any]) -> float:
    shipped = yaml.safe_load((REPOSITORY / "config" / "da3c_ale_boxing.yaml").read_text())
    algorithm = {**numbers(shipped["algorithm"]), **changes}
    del algorithm["path"]
    with running_servers(algorithm, "batched") as servers:
        from relaax.common.bridge import Bridge

        bridge = Bridge(servers.parameter_server_url)
        with environments(servers.rlx_server_url, "ALE/Boxing-v5", 8, 8, 1):
            while bridge.increment_global_t(0) < 500:
                time.sleep(0.1)
            before, began = bridge.increment_global_t(0), time.monotonic()
            time.sleep(seconds)
            rate = (bridge.increment_global_t(0) - before) / (time.monotonic() - began)
        bridge.close()
    return rate


def run_alone(name: str, what: str, *flags: str) -> dict[str, Any]:
    """Run a baseline in a process of its own, so that nothing of another run is left in it."""
    command = [sys.executable, __file__, what, "--alone", name, *flags]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def baseline(name: str, what: str, arguments: argparse.Namespace) -> dict[str, Any]:
    if what == "cartpole":
        return cartpole_baseline(name, arguments.seed)
    return boxing_baseline(name, arguments.seconds)


def cartpole_baseline(name: str, seed: int) -> dict[str, Any]:
    import stable_baselines3
    import torch
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(2)
    zoo: dict[str, dict[str, Any]] = {
        "PPO": {
            "n_steps": 32, "batch_size": 256, "gae_lambda": 0.8, "gamma": 0.98, "n_epochs": 20,
            "ent_coef": 0.0, "learning_rate": lambda left: 1e-3 * left,
            "clip_range": lambda left: 0.2 * left,
        },
        "A2C": {"ent_coef": 0.0},
    }  # fmt: skip
    model = getattr(stable_baselines3, name)(
        "MlpPolicy", make_vec_env("CartPole-v1", 8, seed=seed), seed=seed, **zoo[name]
    )
    goal = goal_callback()
    began = time.monotonic()
    model.learn(MOST_STEPS, callback=goal)
    return {
        "seconds": time.monotonic() - began,
        "steps": model.num_timesteps,
        "reached": goal.is_reached,
    }


def goal_callback() -> Any:
    from stable_baselines3.common.callbacks import BaseCallback

    class StopAtGoal(BaseCallback):
        is_reached = False

        def _on_step(self) -> bool:
            returns = [info["r"] for info in self.model.ep_info_buffer]
            self.is_reached = len(returns) == 100 and sum(returns) / 100 >= GOAL
            return not self.is_reached

    return StopAtGoal()


def boxing_baseline(name: str, seconds: float) -> dict[str, Any]:
    import stable_baselines3
    import torch
    from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecTransposeImage

    sys.path.insert(0, str(ENVIRONMENTS))
    from atari import AtariFactory

    torch.set_num_threads(2)
    factory = AtariFactory("ALE/Boxing-v5", None, {})
    games = VecTransposeImage(VecFrameStack(DummyVecEnv([lambda: framed(factory)] * 8), 4))
    model = getattr(stable_baselines3, name)("CnnPolicy", games, seed=1)
    timer = timer_callback(seconds)
    model.learn(10_000_000, callback=timer)
    return {"steps_per_s": timer.steps_per_s}


def framed(factory: Any) -> Any:
    """Return a game whose frames have the axis of channels that Stable-Baselines3 asks for."""
    import gymnasium

    game = factory()
    space = gymnasium.spaces.Box(0, 255, (84, 84, 1), "uint8")
    return gymnasium.wrappers.TransformObservation(game, lambda frame: frame[..., None], space)


def timer_callback(seconds: float) -> Any:
    from stable_baselines3.common.callbacks import BaseCallback

    class Timer(BaseCallback):
        steps_per_s = 0.0

        def _on_training_start(self) -> None:
            self._began, self._before = None, 0

        def _on_step(self) -> bool:
            now = time.monotonic()
            if self._began is None and self.num_timesteps >= 500:
                self._began, self._before = now, self.num_timesteps
            if self._began is None or now - self._began < seconds:
                return True
            self.steps_per_s = (self.num_timesteps - self._before) / (now - self._began)
            return False

    return Timer()


if __name__ == "__main__":
    main()
