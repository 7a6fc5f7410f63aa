"""Says what an algorithm's own code raised, and where."""

import traceback
from pathlib import Path

from relaax.failure_log import in_words


def cause(error: Exception, directory: Path) -> str:
    """Return the error in one line, with the last line of the algorithm that led to it."""
    if isinstance(error, SyntaxError) and error.filename:  # no frame is in a file with a mistake
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).is_relative_to(directory)]
    place = f" ({inside[-1].filename}:{inside[-1].lineno})" if inside else ""
    return f"{in_words(error)}{place}"
