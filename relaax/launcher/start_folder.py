"""Whether a Procfile is started in the folder that its lines are written for."""

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from relaax.configuration.access_file import FILES
from relaax.errors import ConfigurationError
from relaax.launcher.described import Described
from relaax.launcher.shell_words import python_program

#: Such a line chooses its folder itself.
_GOES_ELSEWHERE = re.compile(r"\bcd\b")

#: Options of servers whose values are files that are read. Others are written, or may be missing.
_READ = ("--config", "--aws-keys", *FILES)


def require_start_folder(procfile: Path, processes: Iterable[Described]) -> None:
    """Raise ConfigurationError for a file that is missing here, and is there for the Procfile.

    That is below the folder of the Procfile, or below the one around it: from there its lines are
    to be started. What is missing there, too, is left to the program that needs it.
    """
    here = Path.cwd()
    places = [place for place in procfile.resolve().parents[:2] if place != here]
    for process in processes:
        for name in _files(process):
            place = next((each for each in places if os.path.isfile(each / name)), None)
            if place is not None and not os.path.exists(name):
                raise ConfigurationError(
                    f"{procfile} names {name}, which is not below this folder, but below {place}: "
                    f"start it there, after 'cd {shlex.quote(str(place))}'. For an environment of "
                    "your own, 'relaax-new NAME' makes a folder with a Procfile"
                )


def _files(process: Described) -> Iterator[str]:
    """Yield the relative paths that a command reads, and without which it cannot start."""
    command = process.command
    if command is None or _GOES_ELSEWHERE.search(command.text):
        return
    words = command.started()
    script = python_program(words)
    named = [value for option in _READ for value in command.values(option)]
    if words and "/" in words[0]:  # a name without a folder is looked up elsewhere
        named.insert(0, words[0])
    if script is not None and script.file is not None:
        named.insert(0, str(script.file))
    yield from (name for name in named if not os.path.isabs(name))
