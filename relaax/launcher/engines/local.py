"""Several copies of the processes of a Procfile on this machine."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from relaax.address import Address
from relaax.launcher.engines.hosted import free_port
from relaax.launcher.engines.plan import Planned, told
from relaax.launcher.ports import waiting_for_servers
from relaax.launcher.process_manager import ProcessManager


@contextmanager
def on_this_machine(
    processes: Sequence[Planned],
    environment: Mapping[str, str],
    printer: Any,
    restarts: bool,
    rlx_ports: Sequence[int] = (),
) -> Iterator[ProcessManager]:
    """Yield a manager of processes, each with an address of its own.

    Environments of RLX servers at ``rlx_ports``, and at those of copies, begin when these listen.
    """
    manager = ProcessManager(printer, restarts)
    places = _places(processes)
    ports = [*rlx_ports, *(place.port for place in places.values())]
    with tempfile.TemporaryDirectory(prefix="relaax-") as folder:
        for process, said in zip(processes, told(processes, places, Path(folder)), strict=True):
            for path, text in said.files.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            own = {**environment, **process.variables()}
            manager.add_process(said.name, waiting_for_servers(said.command, ports), env=own)
        yield manager


def _places(processes: Sequence[Planned]) -> dict[str, Address]:
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
