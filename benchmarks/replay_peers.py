"""Other programs' replays: Stable-Baselines3's buffer, and Reverb in an environment of its own."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from replay_load import ENVIRONMENTS
from replay_shapes import Shape

REVERB = "dm-reverb[tensorflow]==0.14.0"
REVERB_PYTHON = "python3.11"
REVERB_RATES = Path(__file__).with_name("reverb_rates.py")
REVERB_DEADLINE_S = 300.0

#: Of Stable-Baselines3's buffer, which stores whole stacks.
BUFFER_STEPS = {"small": 1_000_000, "images": 8_000}


class PeerMissing(Exception):
    """Another program cannot be measured here."""


class BaselinesBuffer:
    """Stable-Baselines3's ReplayBuffer of a shape, full."""

    def __init__(self, shape: Shape, capacity: int) -> None:
        try:
            from stable_baselines3.common.buffers import ReplayBuffer
        except ImportError as error:
            raise PeerMissing(f"Stable-Baselines3 is left out: {error}") from error
        columns = shape.schema.columns
        observation, action = columns["observation"], columns["action"]
        size = (ENVIRONMENTS, shape.view.stack, *observation.shape)
        random = np.random.default_rng(6)
        self._observations = (10 * random.standard_normal(size)).astype(observation.dtype)
        if shape.view.stack == 1:
            self._observations = self._observations[:, 0]
        self._actions = np.zeros((ENVIRONMENTS, *(action.shape or (1,))), action.dtype)
        self._buffer = ReplayBuffer(
            capacity,
            gymnasium.spaces.Box(0, 255, self._observations.shape[1:], observation.dtype.type),
            _action_space(action),
            device="cpu",
            n_envs=ENVIRONMENTS,
            optimize_memory_usage=True,
            handle_timeout_termination=False,
        )
        for _ in range(capacity // ENVIRONMENTS + 1):
            self.store()

    def store(self) -> int:
        """Add a step of each environment; return how many these are."""
        self._buffer.add(
            self._observations,
            self._observations,
            self._actions,
            np.zeros(ENVIRONMENTS),
            np.zeros(ENVIRONMENTS),
            [{}] * ENVIRONMENTS,
        )
        return ENVIRONMENTS

    def drawing(self, batch: int) -> Callable[[], int]:
        """Return a call that draws a batch, as tensors of PyTorch."""
        return lambda: len(self._buffer.sample(batch).rewards)


def _action_space(column: Any) -> gymnasium.Space[Any]:
    if column.shape:
        return gymnasium.spaces.Box(-1, 1, column.shape, column.dtype.type)
    return gymnasium.spaces.Discrete(18)


def reverb_python(environment: Path, installs: bool) -> Path:
    """Return the Python of an environment with Reverb, which is made if ``installs``."""
    python = environment / "bin" / "python"
    if not python.exists():
        if not installs:
            raise PeerMissing(
                f"Reverb is left out: there is no {python}; --install-reverb makes it"
            )
        _install(environment, python)
    return python


def reverb_rates(python: Path, shape: str, selector: str, batch: int, seconds: float) -> Any:
    """Return what Reverb reaches, a mapping for each of append and sample."""
    command = [python, REVERB_RATES, shape, str(batch), "--selector", selector]
    return [
        json.loads(line)
        for line in _output_of([*command, "--seconds", str(seconds)]).splitlines()
        if line.startswith("{")
    ]


def _install(environment: Path, python: Path) -> None:
    base = shutil.which(REVERB_PYTHON)
    if base is None:
        raise PeerMissing(f"Reverb is left out: there is no {REVERB_PYTHON}, which it needs")
    _output_of([base, "-m", "venv", environment])
    _output_of([python, "-m", "pip", "install", "--quiet", REVERB])


def _output_of(command: list[Any]) -> str:
    try:
        return subprocess.run(  # noqa: S603 - programs of our own
            command, check=True, capture_output=True, text=True, timeout=REVERB_DEADLINE_S
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        details = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        raise PeerMissing(f"Reverb is left out: {details[-1]}") from error
