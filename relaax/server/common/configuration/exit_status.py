"""What a command's end says to the shell."""

import sys
from collections.abc import Callable

from relaax.common.errors import CheckpointError, CheckpointMismatch, ConfigurationError

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


def _explain(program: str, error: Exception, status: int) -> int:
    one_line = " ".join(str(error).split())
    print(f"{program}: error: {one_line}", file=sys.stderr)
    return status
