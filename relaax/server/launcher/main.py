"""The command ``relaax-train``: one command for a whole training.

honcho runs each process in a session of its own, so Ctrl-C reaches the launcher alone. It then
sends SIGTERM to all processes: the parameter server writes a checkpoint, RLX server and clients
end. The same happens when one process ends by itself. What still runs after 30 seconds is killed.

The exit status is that of the process that ended first (128 + N if signal N ended it), or 130
after SIGINT, 143 after SIGTERM, after SIGHUP (the terminal was closed) and when nobody reads the
output any more, 2 for a Procfile that cannot be used.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from honcho.environ import Procfile, parse_procfile

from relaax.server.launcher.live_printer import LivePrinter
from relaax.server.launcher.process_manager import ProcessManager

_DESCRIPTION = """\
Start all processes of a Procfile, show how the training goes, and stop them all when the first of
them ends: at the end of the training that is the parameter server or the RLX server. The same as
"honcho -f PROCFILE start", with the progress in one line. Ctrl-C saves a checkpoint and stops."""


def main() -> int:
    """Run a Procfile; the exit status is that of the process that ended first."""
    parser = argparse.ArgumentParser(prog="relaax-train", description=_DESCRIPTION)
    parser.add_argument(
        "procfile", type=Path, metavar="PROCFILE", help="such as Procfiles/cartpole.Procfile"
    )
    path: Path = parser.parse_args().procfile
    try:
        procfile = parse_procfile(path.read_text(encoding="utf-8"))
    except OSError as error:
        parser.error(f"cannot read {path}: {error.strerror}")
    except UnicodeDecodeError as error:
        parser.error(f"{path} is not UTF-8 text: {error.reason}")
    except AssertionError as error:  # honcho's way to refuse a name that stands twice
        parser.error(f"{path}: {error}")
    if not procfile.processes:
        parser.error(f"{path} names no process: a line of it is 'name: command'")
    return _run(procfile)


def _run(procfile: Procfile) -> int:
    _stop_when_the_terminal_closes()
    printer = LivePrinter(sys.stdout)
    manager = ProcessManager(printer)
    for name, command in procfile.processes.items():
        manager.add_process(name, command, env=_environment())
    try:
        manager.loop()
    finally:
        printer.close()
    return manager.exit_status()


def _stop_when_the_terminal_closes() -> None:
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup asks
        signal.signal(signal.SIGHUP, lambda number, frame: signal.raise_signal(signal.SIGTERM))


def _environment() -> dict[str, str]:
    """The commands of this Python's environment come first; what they print comes at once."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "true"}


if __name__ == "__main__":
    sys.exit(main())
