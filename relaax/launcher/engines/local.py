"""The processes of a Procfile on this machine."""

import os
from collections.abc import Callable, Mapping, Sequence

from relaax.address import Address
from relaax.launcher import runner
from relaax.launcher.described import Described, told
from relaax.launcher.engines.hosted import Hosted
from relaax.launcher.engines.hosted_program import Run
from relaax.launcher.ports import free_port
from relaax.launcher.runner import GivenUp


class LocalEngine:
    """Runs each process beside the launcher.

    With ``has_copies`` each has an address of its own.
    """

    def __init__(
        self,
        processes: Sequence[Described],
        variables: Mapping[str, str],
        *,
        has_copies: bool = False,
    ) -> None:
        self._variables = variables
        self._told = told(processes, _places(processes) if has_copies else {})
        self._hosted: dict[str, Hosted] = {}
        self.on_change: Callable[[str], object] = lambda name: None

    def host(self, name: str) -> str:
        """Return nothing: all are on this machine."""
        return ""

    def start(self, name: str, number: int) -> int:
        """Start a process for the ``number``-th time, and return its process group."""
        process = self._told[name]
        variables = process.variables(self._variables, number)
        self._hosted[name] = self.hosted(name)
        return self._hosted[name].start(Run(process.text, os.getcwd(), variables, runner.GRACE_S))

    def hosted(self, name: str) -> Hosted:
        """Return a place for a process."""
        return Hosted()

    def output(self, name: str, goes_on: Callable[[], bool]) -> tuple[list[bytes], int | None]:
        """Return the lines since the last call, and the status if it has ended."""
        if not goes_on():
            raise GivenUp
        return self._hosted[name].output()

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a process, and to all that it has started."""
        self._hosted[name].signal(number)

    def move(self, name: str, goes_on: Callable[[], bool]) -> None:
        """Do nothing: this machine is never gone."""


def _places(processes: Sequence[Described]) -> dict[str, Address]:
    """Return where servers listen: the first one of each line where it is written."""
    places: dict[str, Address] = {}
    written = {process.listens.port for process in processes if process.listens is not None}
    for process in processes:
        if process.listens is None:
            continue
        taken = {place.port for place in places.values()} | written - {process.listens.port}
        if process.copy == 0:
            places[process.name] = process.listens
        else:
            port = free_port(process.listens.host, process.listens.port, taken)
            places[process.name] = Address(process.listens.host, port)
    return places
