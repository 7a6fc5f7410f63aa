"""environments/Reach_Target/main, the program that people copy from."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import wait_for

pytestmark = pytest.mark.integration

PROGRAM = Path(__file__).parents[3] / "environments" / "Reach_Target" / "main"


@pytest.mark.parametrize("is_served", [True, False])
def test_ctrl_c_is_quiet(server, unused_url: str, tmp_path: Path, is_served: bool) -> None:
    errors = tmp_path / "errors"
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, PROGRAM, "--rlx-server", server.url if is_served else unused_url],
            stdout=subprocess.PIPE, stderr=stderr, text=True,
        )  # fmt: skip
    try:
        wait_for(lambda: server.steps if is_served else errors.read_text(), "its first step")
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, printed) == (0, "stopped\n")
    # One line says that it waits for a server.
    assert errors.read_text().count("\n") == (not is_served)
