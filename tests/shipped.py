"""Shipped configurations, as trainings of tests take them."""

from pathlib import Path
from typing import Any

import pytest
from processes import REPOSITORY, Process

from relaax.configuration.yaml_reader import read_yaml


def shipped(file: str) -> dict[str, Any]:
    """The ``algorithm:`` section of a file of config/, with an absolute path."""
    section = {**read_yaml(REPOSITORY / "config" / file)["algorithm"]}
    name = section.pop("name", None) or Path(section["path"]).name
    section["path"] = str(REPOSITORY / "algorithms" / name)
    return section


def goal_of(file: str) -> float:
    """The mean return at which a training with a file of config/ stops."""
    goal: float = read_yaml(REPOSITORY / "config" / file)["relaax-parameter-server"][
        "--goal-return"
    ]
    return goal


def say_steps(
    capsys: pytest.CaptureFixture[str], parameter_server: Process, what: str, goal: float
) -> None:
    """Print how many steps a training took that has reached its goal, past pytest's own output."""
    steps = parameter_server.says(r"has reached its goal: global step ([\d,]+);", 0.1)[1]
    with capsys.disabled():
        print(f"\n{what}: a mean return of {goal:g} took {steps} steps")
