"""What a command's end says to the shell."""

import signal
import sys
from collections.abc import Callable

from relaax.errors import CheckpointError, CheckpointMismatch, ConfigurationError

#: What the user wrote cannot be used.
USAGE = 2
#: Something outside failed.
FAILURE = 1


def run_command(program: str, command: Callable[[], int]) -> int:
    """Return the exit status of ``command``; its known errors become one line each."""
    try:
        return command()
    except (ConfigurationError, CheckpointMismatch) as error:
        return _explain(program, error, USAGE)
    except CheckpointError as error:
        return _explain(program, error, FAILURE)


def leave_undisturbed() -> None:
    """Ignore what would stop a command that is over.

    While Python ends, its own handlers are gone, and SIGTERM would kill the process: to whoever
    waits for it the command would seem to have failed.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _explain(program: str, error: Exception, status: int) -> int:
    one_line = " ".join(str(error).split())
    print(f"{program}: error: {one_line}", file=sys.stderr)
    return status
