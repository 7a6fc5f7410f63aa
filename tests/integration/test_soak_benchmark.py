"""The program that lets every kind of process fail, as it is started by hand, for a minute."""

import os
import re
import signal
import subprocess
import sys

import pytest
from balancer import NEEDS_HAPROXY
from processes import REPOSITORY

pytestmark = [pytest.mark.integration, NEEDS_HAPROXY]

DEADLINE_S = 300.0

#: Within a minute this one kills a shard, a replay server, a worker and an RLX server, stops the
#: learner, and cuts the S3 server and a client off.
SEED = 22


def test_a_minute_of_faults_loses_no_step_that_is_not_accounted_for(tmp_path):
    with subprocess.Popen(
        [sys.executable, REPOSITORY / "benchmarks" / "soak.py", "--seconds", "60",
         "--seed", str(SEED), "--directory", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as soak:  # fmt: skip
        try:
            said, _ = soak.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            soak.send_signal(signal.SIGTERM)
            said, _ = soak.communicate(timeout=DEADLINE_S)
    print(said)
    assert soak.returncode == 0
    assert said.count("holds  ") == 11
    sent, counted = map(int, re.search(r"(\d+) sent = (\d+) counted", said).groups())
    assert sent >= counted > 0
