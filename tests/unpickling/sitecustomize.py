"""Watches what a process unpickles: Python imports this before anything else, from PYTHONPATH.

An import of pickle says little, since numpy and multiprocessing have one. What can run code is a
pickle that names a class or a function: Python announces each such name, whatever library asks.
"""

import os
import sys
from types import FrameType

#: A folder with a file for each process, forked ones included: its command, and what it unpickled.
FOLDER = os.environ["RELAAX_UNPICKLED"]

#: multiprocessing's pipes lead from a process to its own children alone.
BETWEEN_OWN_PROCESSES = "multiprocessing."


def _note(text: str) -> None:
    with open(os.path.join(FOLDER, str(os.getpid())), "a") as file:
        file.write(f"{text}\n")


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "pickle.find_class":
        modules = list(_modules(sys._getframe(1)))  # noqa: SLF001 - who unpickles
        if not any(name.startswith(BETWEEN_OWN_PROCESSES) for name in modules):
            _note(f"unpickles {arguments[0]}.{arguments[1]} in {' < '.join(modules)}")


def _modules(frame: FrameType | None) -> "list[str]":
    names = []
    while frame is not None:
        names.append(str(frame.f_globals.get("__name__")))
        frame = frame.f_back
    return names


def _begin() -> None:
    _note(f"runs {' '.join(sys.orig_argv)}")


sys.addaudithook(_watch)
os.register_at_fork(after_in_child=_begin)
_begin()
