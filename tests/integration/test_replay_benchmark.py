"""The program that measures replays, as it is started by hand."""

import itertools
import json
import os
import subprocess
import sys

import pytest
from processes import REPOSITORY

pytestmark = pytest.mark.integration

DEADLINE_S = 300.0


@pytest.fixture(name="output", scope="module")
def _output(tmp_path_factory):
    """What a quick run printed, and its rows."""
    path = tmp_path_factory.mktemp("replay") / "rows.json"
    command = [sys.executable, REPOSITORY / "benchmarks" / "replay.py", "--quick", "--json", path]
    chosen = ["--selectors", "prioritized", "--paths", "process", "grpc", "wire", "reverb"]
    done = subprocess.run(
        [*command, *chosen, "--reverb", path.parent / "absent"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(path.read_text())


def test_every_path_is_measured_for_both_shapes(output):
    text, rows = output
    measured = {(row["what"], row["shape"], row["path"], row["selector"]) for row in rows}
    cells = {("append", "process"), ("append", "grpc")}
    cells |= {("sample", path) for path in ("process", "grpc", "wire")}
    assert measured == {
        (what, shape, path, "prioritized")
        for (what, path), shape in itertools.product(cells, ("small", "images"))
    }
    assert len(text.splitlines()) >= 1 + len(rows)


def test_every_rate_is_positive_and_stands_beside_that_of_memcpy(output):
    _, rows = output
    assert all(row["per_s"] > 0 and row["memcpy_per_s"] > 0 for row in rows)


def test_a_program_that_is_not_installed_is_left_out_with_a_line(output):
    text, _ = output
    assert "Reverb is left out: there is no" in text
    assert "--install-reverb" in text
