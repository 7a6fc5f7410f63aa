"""Reverb, which is measured in a Python environment of its own."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

REVERB = "dm-reverb[tensorflow]==0.14.0"
REVERB_PYTHON = "python3.11"
REVERB_RATES = Path(__file__).with_name("reverb_rates.py")
REVERB_DEADLINE_S = 300.0


class PeerMissing(Exception):
    """Another program cannot be measured here."""


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
