"""A process of a Procfile, on the machine of the launcher or of a cluster."""

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Collection
from contextlib import suppress
from typing import IO, Any

from relaax.address import MAX_PORT
from relaax.errors import ConfigurationError
from relaax.launcher.engines import hosted_program
from relaax.launcher.engines.hosted_program import Run

#: How long ``output`` waits for the first line.
_WAIT_S = 1.0

#: Lines that nobody has asked for; the command waits when there are more.
_LINES = 1000


def free_port(host: str, preferred: int, taken: Collection[int]) -> int:
    """Return ``preferred``, or the first one above it that is free here and not ``taken``.

    It is near the servers' own ports, so that no outgoing connection gets it meanwhile, as port 0.
    """
    for port in range(preferred, MAX_PORT + 1):
        if port in taken:
            continue
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind((host, port))
                return port
    raise ConfigurationError(f"no port of {host} from {preferred} on is free")


class Hosted:
    """Runs one command at a time; many threads may call it.

    The command ends with the process that made this: with SIGTERM, and SIGKILL if it takes long.
    Where that process kills its children at its end, the command is ``detached`` from it.
    """

    def __init__(self, *, detached: bool = False) -> None:
        self._flags = ["--detached"] if detached else []
        self._lines: queue.Queue[bytes | int] = queue.Queue(_LINES)
        self._pid: int | None = None

    def start(self, run: Run) -> int:
        """Start a command and return its number, 0 if it could not be started.

        Its lines and its status are returned by ``output``.
        """
        status, theirs = os.pipe()
        # Nothing but the standard library is imported: so it starts soon.
        command = [sys.executable, "-E", "-S", "-P", hosted_program.__file__]
        with os.fdopen(theirs, "wb"):
            program = subprocess.Popen(  # noqa: S603  # this project's own
                [*command, "--status", str(theirs), *self._flags],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs],
                start_new_session=True,
            )
        life: Any = program.stdin
        life.write(run.line().encode())
        life.flush()
        words = os.fdopen(status)
        said = _said(words)
        self._pid = said.get(hosted_program.GROUP)
        threading.Thread(target=self._read, args=(program, words, said), daemon=True).start()
        return self._pid or 0

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
        """Send a signal to the command and to all processes that it has started."""
        if self._pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._pid, number)

    def _read(self, program: subprocess.Popen[bytes], words: IO[str], said: dict[str, int]) -> None:
        """Keep the printed lines, until the command ends; its standard input is closed then."""
        with program, words:
            for line in program.stdout or ():
                self._lines.put(line)
            code = {**said, **_said(words)}.get(hosted_program.STATUS)
        if code is None:  # the program was killed, or could not begin
            self.signal(signal.SIGKILL)
            code = hosted_program.CANNOT_START if self._pid is None else -signal.SIGKILL
        self._pid = None
        self._lines.put(code)


def _said(words: IO[str]) -> dict[str, int]:
    """Return the word and number of the next line; nothing at the end."""
    name, _, number = words.readline().partition(" ")
    return {name: int(number)} if number else {}
