"""How many files a process may have open."""

import contextlib
import resource


def allow_many_files() -> None:
    """Allow as many open files as the system lets this process have: each connection takes one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
