"""Whether a Procfile is started in the folder that its lines are written for."""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from relaax.configuration.access_file import FILES
from relaax.errors import ConfigurationError

#: Such a line chooses its folder itself.
_GOES_ELSEWHERE = re.compile(r"\bcd\b")

#: Options of servers whose values are files that are read. Others are written, or may be missing.
_READ = ("--config", "--aws-keys", *FILES)

_BEFORE_A_PROGRAM = ("exec", "env")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"python[\d.]*")


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
    """Yield the relative paths that a command reads, and without which it cannot start."""
    if _GOES_ELSEWHERE.search(command):
        return
    try:
        words = shlex.split(command)
    except ValueError:  # the shell will say what is wrong
        return
    for name in (*_program(words), *_values(words)):
        if not os.path.isabs(name):
            yield name


def _program(words: Sequence[str]) -> Iterator[str]:
    """Yield the file that is run, if it is one: a name without a folder is looked up elsewhere."""
    following = iter(words)
    for word in following:
        if word in _BEFORE_A_PROGRAM or _ASSIGNMENT.match(word):
            continue
        if "/" in word:
            yield word
        if _PYTHON.fullmatch(Path(word).name):
            yield from _script(following)
        return


def _script(arguments: Iterator[str]) -> Iterator[str]:
    """Yield the file that Python is told to run; it may be told a module instead, or code."""
    for word in arguments:
        if word in ("-W", "-X"):
            next(arguments, None)
            continue
        if not word.startswith("-"):
            yield word
            return
        if word in ("-m", "-c", "-"):
            return


def _values(words: Sequence[str]) -> Iterator[str]:
    """Yield the values of options that name a file which is read."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, has_value, value = word.partition("=")
        if option in _READ:
            yield value if has_value else following
