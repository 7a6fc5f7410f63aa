"""Whether a file with a secret is open to others."""

import contextlib
from pathlib import Path


def is_open_to_others(path: Path) -> bool:
    """Return whether all users of this machine may read or write it; not if it is gone."""
    with contextlib.suppress(OSError):  # the next reading will say so
        return bool(path.stat().st_mode & 0o007)
    return False
