"""Folders that ``relaax-new`` writes, and trainings in them."""

import subprocess
import sys
from pathlib import Path

from processes import COMMANDS, Process, free_port


def new(directory: Path, *flags: str) -> Path:
    ports = ("--port-base", "7000")  # which nothing listens at in most tests
    subprocess.run(
        [sys.executable, "-m", "relaax.launcher.new_application", directory, *ports, *flags],
        check=True, capture_output=True,
    )  # fmt: skip
    return directory


def train(directory: Path, *flags: str, command: Path = COMMANDS / "relaax-train") -> Process:
    return Process("train", [str(command), *flags], directory)


def output_at_the_end(training: Process, status: int = 0) -> str:
    try:
        assert training.wait(240) == status, training.output()
    finally:
        training.kill_family()
    assert "Traceback" not in training.output()
    return training.output()


def use_free_ports(directory: Path) -> None:
    for address in ("localhost:7000", "localhost:7001"):
        place = f"127.0.0.1:{free_port()}"
        for name in ("training.yaml", "Procfile"):
            file = directory / name
            file.write_text(file.read_text().replace(address, place))
