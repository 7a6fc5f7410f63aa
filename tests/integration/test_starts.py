"""Each command, started as a shell does: no test has imported anything for it."""

import subprocess
import tomllib

import pytest
from processes import COMMANDS, REPOSITORY

pytestmark = pytest.mark.integration

SCRIPTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]


@pytest.mark.parametrize("command", SCRIPTS)
def test_a_command_starts_and_refuses_what_it_does_not_know(command: str) -> None:
    refused = subprocess.run(
        [COMMANDS / command, "--no-such-option"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert refused.returncode == 2
    usage, *_, error = refused.stderr.splitlines()
    assert usage.startswith(f"usage: {command} ")
    assert error.startswith(f"{command}: error: ")
    assert "Traceback" not in refused.stderr
