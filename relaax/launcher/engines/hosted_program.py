"""A program that runs one process of a Procfile, on the machine where that is to be.

    python -m relaax.launcher.engines.hosted_program [--status FD] [--detached] < RUN

``RUN`` is a line of JSON, ``Run.line``. The program runs the command in a shell and a session of
its own, outlives the signals that end it, prints its output, and exits with its status, or with
128 + N if signal N ended it. It imports the standard library alone, and starts in 50 ms.

With ``--status`` it writes the number of the command's process group into the pipe ``FD``, and the
status in the end, -N after signal N, each after a word that says which it is; and it stops the
command when its standard input is closed, as it is when the launcher is killed. ``--detached`` is
for a parent that kills its children and its process group when it ends: the program is no child of
it any more then, and in a session of its own.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, NoReturn

_LOOK_S = 0.1

#: How long a command that stops a process may take.
STOP_S = 10.0

#: Whoever sends these sends them to the command, too: Slurm to all that a step has started.
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

#: The words of ``--status``.
GROUP, STATUS = "group", "status"

#: Exit status of a command that cannot be started.
CANNOT_START = 126


@dataclass(frozen=True)
class Run:
    """A command, and how it is run."""

    command: str
    directory: str
    #: Beside those of the machine.
    variables: Mapping[str, str]
    #: How long it may take to end after SIGTERM, when nobody is there any more to end it.
    grace_s: float
    #: A shell command in the place of SIGTERM; where it fails, there is SIGTERM.
    stop: str = ""

    def line(self) -> str:
        """Return the line that the program reads."""
        return json.dumps(asdict(self)) + "\n"


def main() -> int:
    """Run the command that standard input has."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--status", type=int, metavar="FD")
    parser.add_argument("--detached", action="store_true")
    arguments = parser.parse_args()
    command = _Command(Run(**json.loads(sys.stdin.buffer.readline())))
    if arguments.status is None:
        code = command.run()
        return 128 - code if code < 0 else code
    if arguments.detached:
        if os.fork():
            os._exit(0)
        os.setsid()
    threading.Thread(target=command.stop_at_the_end_of_input, daemon=True).start()
    with os.fdopen(arguments.status, "w", buffering=1) as status:
        code = command.run(lambda pid: print(GROUP, pid, file=status))
        print(STATUS, code, file=status)
    return 0


def stopped_by(command: str) -> bool:
    """Run a shell command that stops a process, and return whether it has done so."""
    with suppress(subprocess.TimeoutExpired):
        run = subprocess.run(command, shell=True, timeout=STOP_S, check=False)  # noqa: S602
        return run.returncode == 0
    return False


class _Command:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._child: subprocess.Popen[bytes] | None = None

    def run(self, started: Callable[[int], None] = lambda pid: None) -> int:
        """Run it, with its number for ``started``, and return its status, -N after signal N."""
        directory = Path(self._run.directory)
        if not directory.is_dir():
            print(f"there is no directory {directory} on this machine", flush=True)
            return CANNOT_START
        for number in _IGNORED:
            signal.signal(number, lambda number, frame: None)  # the command does not inherit that
        self._child = subprocess.Popen(  # noqa: S602  # a line of a Procfile is a shell's
            self._run.command,
            shell=True,
            cwd=directory,
            env=_environment(self._run.variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started(self._child.pid)
        self._pass_on(self._child.stdout)
        return self._child.wait()

    def _pass_on(self, output: IO[bytes] | None) -> None:
        """Pass the command's output on, as long as anybody reads it: it may have to save yet."""
        for line in output or ():
            with suppress(BrokenPipeError):
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()

    def stop_at_the_end_of_input(self) -> NoReturn:
        """Wait until standard input is closed, and end the command and this program."""
        while os.read(0, 1):  # not sys.stdin: its lock is held then at the exit
            pass
        if not (self._run.stop and stopped_by(self._run.stop)):
            self._send(signal.SIGTERM)
        deadline = time.monotonic() + self._run.grace_s
        while self._send(0) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        self._send(signal.SIGKILL)
        os._exit(1)

    def _send(self, number: int) -> bool:
        """Send a signal to the command's process group; return whether there is one."""
        if self._child is None:
            return False
        try:
            os.killpg(self._child.pid, number)
        except ProcessLookupError:
            return False
        return True


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return this machine's, with this Python's commands first in PATH, and output unbuffered."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "true", **variables}


if __name__ == "__main__":
    sys.exit(main())
