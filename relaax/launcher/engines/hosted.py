"""A process of a Procfile, on the machine of the launcher or of a cluster."""

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

from relaax.launcher.engines import hosted_program
from relaax.launcher.engines.hosted_program import Run

#: How long ``output`` waits for the first line.
_WAIT_S = 1.0

#: Lines that wait for ``output``; with more of them the command waits.
_LINES = 1000


class Hosted:
    """Runs one command at a time; many threads may call it.

    The command ends with the process that made this: with SIGTERM, and SIGKILL if it takes long.
    Where that process kills its children at its end, the command is ``detached`` from it.
    ``through`` is a command that runs another one elsewhere, such as ``srun``.
    """

    def __init__(self, *, through: Sequence[str] = (), detached: bool = False) -> None:
        self._through = through
        self._flags = ["--detached"] if detached else []
        self._lines: queue.Queue[bytes | int] = queue.Queue(_LINES)
        self._program: subprocess.Popen[bytes] | None = None
        #: The words of the program, with their numbers.
        self._said: dict[bytes, int] = {}

    def start(self, run: Run) -> int:
        """Start a command and return its number, 0 if it could not be started.

        Its lines and its status are returned by ``output``. The number is of the program that runs
        the command elsewhere, if it is not run here.
        """
        # Nothing but the standard library is imported: so it starts soon.
        command = [sys.executable, "-E", "-S", "-P", hosted_program.__file__, *self._flags]
        self._said = {}
        self._program = subprocess.Popen(  # noqa: S603  # this project's own
            [*self._through, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._order(run.line())
        printed = None if self._through else self._program.stdout
        if printed is not None and (line := printed.readline()):  # none where it died at once
            self._take(line)
        threading.Thread(target=self._read, args=(self._program,), daemon=True).start()
        return self._program.pid if self._through else self._said.get(hosted_program.GROUP, 0)

    def output(self) -> tuple[list[bytes], int | None]:
        """Return the lines since the last call, and the status if the command has ended.

        It waits a second for the first line. The status is -N after signal N.
        """
        lines: list[bytes] = []
        with suppress(queue.Empty):
            found = self._lines.get(timeout=_WAIT_S)
            while isinstance(found, bytes):
                lines.append(found)
                found = self._lines.get_nowait()
            return lines, found
        return lines, None

    def signal(self, number: int) -> None:
        """Send a signal to the command and to all processes that it has started.

        Where it has not begun elsewhere, the program gets it that would run it there.
        """
        self._order(f"{number:d}\n")
        if self._through and self._program is not None and hosted_program.GROUP not in self._said:
            with suppress(ProcessLookupError):
                os.killpg(self._program.pid, number)

    def _order(self, line: str) -> None:
        """Write a line to the program, unless it has ended."""
        if self._program is not None and self._program.stdin is not None:
            with suppress(OSError, ValueError):
                os.write(self._program.stdin.fileno(), line.encode())

    def _read(self, program: subprocess.Popen[bytes]) -> None:
        """Keep the printed lines, until the command ends."""
        with program:
            for line in program.stdout or ():
                self._take(line)
        code = self._said.get(hosted_program.STATUS)
        if code is None:  # the program was killed, or could not begin
            group = self._said.get(hosted_program.GROUP)
            if group is not None and not self._through:
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
            code = hosted_program.CANNOT_START if group is None else -signal.SIGKILL
        self._lines.put(code)

    def _take(self, line: bytes) -> None:
        """Keep a line of the command, of this project's program, or of the one around it."""
        word, _, number = line.removeprefix(hosted_program.OWN).partition(b" ")
        if line.startswith(hosted_program.OWN) and number.strip().lstrip(b"-").isdigit():
            self._said[word] = int(number)
        else:
            self._lines.put(line.removeprefix(hosted_program.OUTPUT))
