"""Small programs that fork, each in a process of its own.

Forking a test runner, with its threads, would test something else.
"""

import subprocess
import sys
import textwrap


def run(preamble: str, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program after its preamble, in which its assertions hold; return what it printed."""
    completed = subprocess.run(
        [sys.executable, "-c", preamble + textwrap.dedent(program)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    return completed
