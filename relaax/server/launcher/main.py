"""The command ``relaax-train``: one command for a whole training."""

import argparse
import os
import sys
from pathlib import Path

from honcho.environ import Procfile, parse_procfile
from honcho.manager import Manager
from rich.console import Console

from relaax.server.launcher.live_printer import LivePrinter

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
        procfile = parse_procfile(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"cannot read {path}: {error}")
    if not procfile.processes:
        parser.error(f"{path} names no process: a line of it is 'name: command'")
    return _run(procfile)


def _run(procfile: Procfile) -> int:
    printer = LivePrinter(Console())
    try:
        manager = Manager(printer)
        for name, command in procfile.processes.items():
            manager.add_process(name, command, env=_environment())
        manager.loop()
    finally:
        printer.close()
    return int(manager.returncode)


def _environment() -> dict[str, str]:
    """The commands of this Python's environment come first; what they print comes at once."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "true"}


if __name__ == "__main__":
    sys.exit(main())
