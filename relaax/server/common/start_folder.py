"""Whether a Procfile is started in the folder that its lines are written for."""

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from relaax.errors import ConfigurationError

#: Such a line chooses its folder itself.
_GOES_ELSEWHERE = re.compile(r"\bcd\b")


def require_start_folder(procfile: Path, commands: Iterable[str]) -> None:
    """Raise ConfigurationError for a file that is missing here, and is there for the Procfile.

    That is below the folder of the Procfile, or below the one around it: from there its lines are
    to be started. What is missing there, too, is left to the program that needs it.
    """
    here = Path.cwd()
    places = [place for place in procfile.resolve().parents[:2] if place != here]
    for command in commands:
        for name in _files(command):
            place = next((each for each in places if os.path.isfile(each / name)), None)
            if place is not None and not os.path.exists(name):
                raise ConfigurationError(
                    f"{procfile} names {name}, which is not below this folder, but below {place}: "
                    f"start it there, after 'cd {shlex.quote(str(place))}'. For an environment of "
                    "your own, 'relaax-new NAME' makes a folder with a Procfile"
                )


def _files(command: str) -> Iterator[str]:
    """Yield the words of a command that may be files of the folder that it is started in."""
    if _GOES_ELSEWHERE.search(command):
        return
    try:
        words = shlex.split(command)
    except ValueError:  # the shell will say what is wrong
        return
    for word in words:
        name = word.rpartition("=")[2]
        if ("/" in name or Path(name).suffix) and not os.path.isabs(name):
            yield name
