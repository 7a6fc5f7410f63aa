"""A program that runs one process of a Procfile, on the machine where that is to be.

    python -m relaax.launcher.engines.hosted_program [--detached] < ORDERS

The first line of ``ORDERS`` is ``Run.line``, JSON, and each further one the number of a signal for
the command. Where they end, as they do when the launcher is killed, the command is stopped. It runs
in a shell and a session of its own, so that it outlives signals that end this program.

Lines of the command's output begin with ``>``, and two of this program's own with ``#``: the number
of the command's process group, and its status in the end, -N after signal N. With ``--detached``
the program leaves the session and the children of its parent, which may kill those when it ends.
It imports the standard library alone, and starts in 50 ms.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

_LOOK_S = 0.1

#: Processes that send these to the program send them to the command, too: Slurm to all of a step.
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

#: The first byte of lines of the command and of this program, and the words of the latter.
OUTPUT, OWN = b">", b"#"
GROUP, STATUS = b"group", b"status"

#: Exit status of a command that cannot be started.
CANNOT_START = 126


@dataclass(frozen=True)
class Run:
    """A command, and how it is run."""

    command: str
    directory: str
    #: Beside those of the machine.
    variables: Mapping[str, str]
    #: How long the command may take to end after SIGTERM, when the launcher has ended.
    grace_s: float

    def line(self) -> str:
        """Return the line that the program reads."""
        return json.dumps(asdict(self)) + "\n"


def main() -> None:
    """Run the command that standard input names, and say its status."""
    # No buffer: its lock would be held at the exit by the thread that reads.
    orders = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115  # closed at the exit
    command = _Command(Run(**json.loads(orders.readline())))
    if sys.argv[1:] == ["--detached"]:
        if os.fork():
            os._exit(0)
        os.setsid()
    _print(OWN + b"%s %d\n" % (STATUS, command.run(orders)))


class _Command:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._pid = 0

    def run(self, orders: BinaryIO) -> int:
        """Run it, obey ``orders``, and return its status, -N after signal N."""
        directory = Path(self._run.directory)
        if not directory.is_dir():
            _print(OUTPUT + f"there is no directory {directory} on this machine\n".encode())
            return CANNOT_START
        for number in _IGNORED:
            signal.signal(number, lambda number, frame: None)  # the command does not inherit that
        child = subprocess.Popen(  # noqa: S602  # a line of a Procfile is a shell's
            self._run.command,
            shell=True,
            cwd=directory,
            env=environment(self._run.variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._pid = child.pid
        _print(OWN + b"%s %d\n" % (GROUP, child.pid))
        threading.Thread(target=self._obey, args=(orders,), daemon=True).start()
        for line in child.stdout or ():
            _print(OUTPUT + line.removesuffix(b"\n") + b"\n")
        return child.wait()

    def _obey(self, orders: BinaryIO) -> NoReturn:
        """Send signals to the command; end it, and this program, at the end of ``orders``."""
        for order in iter(orders.readline, b""):
            self._send(int(order))
        self._send(signal.SIGTERM)
        deadline = time.monotonic() + self._run.grace_s
        while self._send(0) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        self._send(signal.SIGKILL)
        os._exit(1)

    def _send(self, number: int) -> bool:
        """Send a signal to the command's process group; return whether there is one."""
        try:
            os.killpg(self._pid, number)
        except ProcessLookupError:
            return False
        return True


def _print(line: bytes) -> None:
    """Print a line, as long as the launcher reads: the command may have to save yet."""
    with suppress(BrokenPipeError):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return this machine's, with this Python's commands first in PATH, and output unbuffered."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "true", **variables}


if __name__ == "__main__":
    main()
