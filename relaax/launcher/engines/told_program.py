"""A program that runs one process of a Procfile on the machine where that is to be.

    python -m relaax.launcher.engines.told_program [--detached FD] < TOLD

``TOLD`` is a line of JSON, ``Run.line``. The program writes the files that the command reads, runs
it in a shell and a session of its own, outlives the signals that end it, and exits with its status,
or with 128 + N if signal N ended it. It prints what the command prints.

``--detached`` is for a parent that kills its children and its process group when it ends: the
program is no child of it any more then, and in a session of its own. It writes the number of the
command's process group into the pipe ``FD``, and the status in the end, each after a word that says
which it is. When its standard input is closed, it stops the command.
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

from relaax.launcher.process_manager import GRACE_S

_LOOK_S = 0.1

#: Whoever sends these sends them to the command, too: Slurm to all that a step has started.
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

#: The words of ``--detached``.
GROUP, STATUS = "group", "status"

#: Exit status of what cannot be started.
CANNOT_START = 126


@dataclass(frozen=True)
class Run:
    """What is run."""

    command: str
    directory: str
    #: Beside those of the machine.
    variables: Mapping[str, str]
    #: What is written before, by path, and deleted after.
    files: Mapping[str, str]

    def line(self) -> str:
        """Return what the program reads."""
        return json.dumps(asdict(self)) + "\n"


def main() -> int:
    """Run what standard input says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--detached", type=int, metavar="FD")
    status_pipe = parser.parse_args().detached
    command = _Command(Run(**json.loads(sys.stdin.buffer.readline())))
    if status_pipe is None:
        return command.run()
    if os.fork():
        os._exit(0)
    os.setsid()
    threading.Thread(target=command.stop_at_the_end_of_input, daemon=True).start()
    with os.fdopen(status_pipe, "w", buffering=1) as status:
        code = command.run(lambda pid: print(GROUP, pid, file=status))
        print(STATUS, code, file=status)
    return code


class _Command:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._files = {Path(path): text for path, text in run.files.items()}
        self._child: subprocess.Popen[bytes] | None = None

    def run(self, started: Callable[[int], None] = lambda pid: None) -> int:
        """Run it and return its status as a shell would; say its number when it has ``started``."""
        directory = Path(self._run.directory)
        if not directory.is_dir():
            print(f"there is no directory {directory} on this machine", flush=True)
            return CANNOT_START
        for number in _IGNORED:
            signal.signal(number, lambda number, frame: None)  # the command does not inherit that
        try:
            for path, text in self._files.items():
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.write_text(text, encoding="utf-8")
            self._child = subprocess.Popen(  # noqa: S602  # as honcho does
                self._run.command,
                shell=True,
                cwd=directory,
                env=own_environment(self._run.variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            started(self._child.pid)
            self._pass_on(self._child.stdout)
            code = self._child.wait()
        finally:
            self._clean()
        return 128 - code if code < 0 else code

    def _pass_on(self, output: IO[bytes] | None) -> None:
        """Print what the command prints, as long as anybody reads it: it may have to save yet."""
        for line in output or ():
            with suppress(BrokenPipeError):
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()

    def stop_at_the_end_of_input(self) -> NoReturn:
        """Wait until standard input is closed, and end the command and this program."""
        while os.read(sys.stdin.fileno(), 1):  # not sys.stdin: its lock is held then at the exit
            pass
        self._send(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while self._runs() and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        self._send(signal.SIGKILL)
        self._clean()
        os._exit(1)

    def _runs(self) -> bool:
        """Return whether anything of the command's process group is there."""
        return self._send(0)

    def _send(self, number: int) -> bool:
        """Send a signal to the command's process group; return whether there is one."""
        if self._child is None:
            return False
        try:
            os.killpg(self._child.pid, number)
        except ProcessLookupError:
            return False
        return True

    def _clean(self) -> None:
        """Delete the files, and their folders as far as these are empty."""
        for path in self._files:
            path.unlink(missing_ok=True)
            with suppress(OSError):  # others are in it
                path.parent.rmdir()
                path.parent.parent.rmdir()


def own_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return this machine's, with this Python's commands first in PATH, and output unbuffered."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "true", **variables}


if __name__ == "__main__":
    sys.exit(main())
