"""The program that measures how a training scales, as it is started by hand."""

import json
import os
import re
import subprocess
import sys

import pytest
from balancer import NEEDS_HAPROXY
from processes import REPOSITORY

pytestmark = [pytest.mark.integration, NEEDS_HAPROXY]

DEADLINE_S = 300.0


def test_a_training_of_two_servers_and_two_shards_is_measured_and_predicted(tmp_path):
    rows, plot = tmp_path / "rows.json", tmp_path / "scale.png"
    flags = ["--servers", "1", "2", "--shards", "2", "--grid", "--seconds", "1", "--windows", "1"]
    done = subprocess.run(
        [sys.executable, REPOSITORY / "benchmarks" / "scale.py", *flags,
         "--json", rows, "--plot", plot],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    measured = json.loads(rows.read_text())
    assert [(row["size"]["servers"], row["size"]["shards"]) for row in measured] == [(1, 2), (2, 2)]
    for row in measured:
        assert 0 < row["steps"] < row["echo_steps"]
        assert row["updates"] > 0
        assert row["batches"] > 0
        assert all(mib > 0 for mib in row["mib"].values())
    assert "rows with 2 servers were not fitted" in done.stdout
    assert len(re.findall(r"^ +10,000 +64 ", done.stdout, re.MULTILINE)) == 3  # 1, 2 and 4 shards
    assert plot.read_bytes().startswith(b"\x89PNG")
