"""``relaax-train --new-algorithm``: what it writes trains at once."""

import subprocess
from pathlib import Path

import pytest
from processes import COMMANDS, Process, free_port

pytestmark = pytest.mark.integration

TRAIN = COMMANDS / "relaax-train"


def use_free_ports(directory: Path) -> None:
    """Let the files use two ports that are free here, where 7000 and 7001 may be taken."""
    ports = {"localhost:7000": free_port(), "localhost:7001": free_port()}
    for name in ("training.yaml", "Procfile"):
        text = (directory / name).read_text()
        for address, port in ports.items():
            text = text.replace(address, f"127.0.0.1:{port}")
        (directory / name).write_text(text)


def test_the_folder_that_it_writes_trains_as_it_says(tmp_path: Path):
    directory = tmp_path / "my_algorithm"
    said = subprocess.run(
        [TRAIN, "--new-algorithm", directory], check=True, capture_output=True, text=True
    ).stdout
    assert f"  cd {directory}\n  relaax-train Procfile\n" in said
    use_free_ports(directory)
    training = Process("train", [str(TRAIN), "Procfile"], directory)
    try:
        assert training.wait(240) == 0, training.output()
    finally:
        training.kill_family()
    assert "the mean return has reached its goal" in training.output()
    assert "Traceback" not in training.output()
    assert list((directory / "training" / "checkpoints").glob("cp-*.json"))
    assert list((directory / "training" / "metrics").iterdir())
