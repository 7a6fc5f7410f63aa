"""Channels to gRPC servers, in processes that are forked."""

import subprocess
import sys

#: Prints what is imported with the first channel of a process.
PROGRAM = """
import sys
from relaax.parameters import Bridge

before = set(sys.modules)
Bridge("127.0.0.1:1").close()
print(sorted(set(sys.modules) - before))
"""


def test_the_modules_of_a_channel_are_imported_before_a_worker_is_forked():
    """Each worker would import it again, which takes longer than opening the channel."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout == "[]\n"
