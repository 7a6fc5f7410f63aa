"""The parts of a training that run in one process."""

import runpy
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaax.configuration import Configuration


@dataclass(frozen=True)
class Program:
    """A Python program: a file, or a module, and its arguments."""

    file: Path | None
    module: str | None
    arguments: Sequence[str]

    def run(self) -> int:
        """Run it as ``python`` does, and return its exit status; what it raises is raised."""
        argv, path = sys.argv, list(sys.path)
        sys.argv = [str(self.file or self.module), *self.arguments]
        try:
            if self.file is None:
                runpy.run_module(str(self.module), run_name="__main__", alter_sys=True)
            else:
                file = self.file.resolve()
                sys.path.insert(0, str(file.parent))
                runpy.run_path(str(file), run_name="__main__")
        except SystemExit as end:
            return _status_of(end)
        finally:
            sys.argv, sys.path[:] = argv, path
        return 0


def _status_of(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    print(end.code, file=sys.stderr)
    return 1


@dataclass(frozen=True)
class Processes:
    """The servers and the environment of a Procfile, as far as one process has room for them."""

    #: By program.
    servers: Mapping[str, Configuration[Any]]
    environment: Program
    #: The line of the environment.
    line: str
