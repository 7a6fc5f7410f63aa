"""The exit status of a command."""

import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from relaax.errors import (
    Abandoned,
    CheckpointError,
    CheckpointMismatch,
    ConfigurationError,
    LearningDiverged,
)
from relaax.telemetry.logs import write_to_file

#: Exit status: the user must change the command line or the configuration.
USAGE = 2
#: Exit status: a checkpoint cannot be saved or restored.
FAILURE = 1


def run_command(program: str, command: Callable[[], int]) -> int:
    """Run ``command`` and return its exit status; a known error is printed in one line.

    With ``--log-level DEBUG`` the traceback is printed before that line.
    """
    try:
        return command()
    except (ConfigurationError, CheckpointMismatch) as error:
        return _explain(program, error, USAGE)
    except (Abandoned, CheckpointError, LearningDiverged) as error:
        return _explain(program, error, FAILURE)


def leave_undisturbed() -> None:
    """Ignore SIGINT and SIGTERM while a command that has done its work exits.

    Python removes its signal handlers before it exits. A SIGTERM in that moment would kill the
    process, and its exit status would report a failure.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def leave_at_once(status: int) -> NoReturn:
    """End a process that has released its resources, without Python's own way out.

    On that way the threads of gRPC and TensorFlow, which are none of Python's, may wait for one
    another for ever; that is rare, and a process that does not end holds up all others.
    """
    leave_undisturbed()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(status)


def _explain(program: str, error: Exception, status: int) -> int:
    if logging.getLogger().isEnabledFor(logging.DEBUG):
        traceback.print_exception(error)
    one_line = " ".join(str(error).split())
    print(f"{program}: error: {one_line}", file=sys.stderr)
    write_to_file(one_line)
    return status
