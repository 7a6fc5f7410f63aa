"""The format of the servers' log."""

import re
import subprocess
import sys

PROGRAM = """
import logging, os
from relaax.server.common.logs import start_logging
logging.basicConfig(level="DEBUG", format="%(message)s")
start_logging("WARNING")
logging.getLogger("relaax.x").info("too detailed")
logging.getLogger("relaax.x").warning("look at this")
print(os.getpid())
"""


def test_a_line_has_time_process_and_level_and_lower_levels_are_left_out():
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    pid = completed.stdout.strip()
    time_of_day = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"
    assert re.fullmatch(f"{time_of_day}:{pid}:WARNING:look at this\n", completed.stderr)
