"""The command ``relaax-train``, which runs all processes of a training.

honcho runs each process in a session of its own, so Ctrl-C reaches the launcher alone. The launcher
then sends SIGTERM to all processes: the parameter server writes a checkpoint, and the RLX server
and the clients exit. The same happens when one process exits by itself; with ``--restart`` one that
was killed is started again instead. A process that still runs after 30 seconds is killed. When the
launcher itself is killed, they are stopped in the same way.

The exit status is

- that of the process that exited first, or 128 + N if signal N ended it,
- 130 after SIGINT,
- 143 after SIGTERM, after SIGHUP (the terminal was closed), and when the output cannot be written,
- 2 if the Procfile cannot be used.

With ``--new-algorithm DIR`` it writes an algorithm to start from instead, and runs nothing.
"""

import argparse
import io
import os
import signal
import sys
from pathlib import Path

from honcho.environ import Procfile, parse_procfile

from relaax.errors import ConfigurationError
from relaax.live_lines import ASKED_BY
from relaax.server.launcher.live_printer import LivePrinter
from relaax.server.launcher.new_algorithm import next_steps, write_new_algorithm
from relaax.server.launcher.process_log import ProcessLog, log_beside_checkpoints
from relaax.server.launcher.process_manager import ProcessManager

_DESCRIPTION = """\
Start all processes of a Procfile and show the progress of the training. When one process exits,
stop the others: at the end of a training, the parameter server or the RLX server exits first. This
is "honcho -f PROCFILE start" with the progress below the log. Ctrl-C saves a checkpoint and
stops."""


def main() -> int:
    """Run a Procfile and return the exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.new_algorithm is not None:
        return _write_algorithm(parser, arguments.new_algorithm)
    procfile = _procfile(parser, arguments.procfile)
    return _run(procfile, _log(parser, arguments.log_file, procfile), arguments.restart)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="relaax-train", description=_DESCRIPTION)
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument(
        "procfile",
        nargs="?",
        type=Path,
        metavar="PROCFILE",
        help="such as Procfiles/cartpole.Procfile",
    )
    one.add_argument(
        "--new-algorithm",
        type=Path,
        metavar="DIR",
        help="write a small algorithm, its YAML file and its Procfile into a new folder",
    )
    parser.add_argument(
        "--restart",
        action="store_true",
        help="start a process again that is killed, for want of memory or with kill -9, and let "
        "the others run on; not one that ends by itself, nor one that is killed more than five "
        "times a minute. Give the servers --checkpoint-dir: they go on from there",
    )
    parser.add_argument(
        "--log-file",
        type=Path,
        metavar="FILE",
        help="write what all processes log and print into this file, with time, process and level "
        "in each line (default: the file log in the folder of the parameter server's "
        "--checkpoint-dir or --metrics-dir)",
    )
    return parser


def _log(
    parser: argparse.ArgumentParser, given: Path | None, procfile: Procfile
) -> ProcessLog | None:
    path = given or log_beside_checkpoints(procfile.processes.values())
    try:
        return None if path is None else ProcessLog(path)
    except OSError as error:
        parser.error(f"cannot write the log {path}: {error.strerror}; --log-file names another")


def _write_algorithm(parser: argparse.ArgumentParser, directory: Path) -> int:
    try:
        print(next_steps(directory, write_new_algorithm(directory)))
    except ConfigurationError as error:
        parser.error(f"--new-algorithm: {error}")
    return 0


def _procfile(parser: argparse.ArgumentParser, path: Path) -> Procfile:
    try:
        procfile = parse_procfile(path.read_text(encoding="utf-8"))
    except OSError as error:
        parser.error(f"cannot read {path}: {error.strerror}")
    except UnicodeDecodeError as error:
        parser.error(f"{path} is not UTF-8 text: {error.reason}")
    except AssertionError as error:  # honcho refuses a name that is used twice
        parser.error(f"{path}: {error}")
    if not procfile.processes:
        parser.error(f"{path} names no process; a line must be 'name: command'")
    return procfile


def _run(procfile: Procfile, log: ProcessLog | None, restarts: bool) -> int:
    _stop_when_the_terminal_closes()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # what a process prints must not end the training
    printer = LivePrinter(sys.stdout, log)
    manager = ProcessManager(printer, restarts)
    for name, command in procfile.processes.items():
        manager.add_process(name, command, env=_environment(printer.interval_s))
    try:
        manager.loop()
    finally:
        printer.close()
        if log is not None:
            log.close()
    return manager.exit_status()


def _stop_when_the_terminal_closes() -> None:
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores it
        signal.signal(signal.SIGHUP, lambda number, frame: signal.raise_signal(signal.SIGTERM))


def _environment(interval_s: float) -> dict[str, str]:
    """Return variables that put this Python's commands first in PATH and its output unbuffered.

    And that ask for a live line every ``interval_s`` seconds.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "true", ASKED_BY: str(interval_s)}


if __name__ == "__main__":
    sys.exit(main())
