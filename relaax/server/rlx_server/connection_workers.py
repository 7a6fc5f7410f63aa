"""A worker for each connection: forked when it is accepted, gone with it."""

import socket
from collections.abc import Callable, Iterator

from relaax.server.rlx_server.admission import AdmissionDecision, WorkerAdmission
from relaax.server.rlx_server.children import Children, ExitedChild


class ConnectionWorkers:
    """Forks ``run`` for each connection.

    It is given the next of ``seeds``, the connection and its client's address.
    """

    #: Connections can be taken at any time.
    is_open = True

    def __init__(
        self,
        children: Children,
        admission: WorkerAdmission,
        seeds: Iterator[int],
        run: Callable[[int, socket.socket, str], int],
    ) -> None:
        self._children = children
        self._admission = admission
        self._seeds = seeds
        self._run = run
        self._pids: set[int] = set()

    @property
    def pids(self) -> list[int]:
        """The workers that run."""
        return list(self._pids)

    def start_due(self) -> None:
        """Do nothing: a worker starts with its connection."""

    def admit(self) -> AdmissionDecision:
        """Decide whether there is memory for one more connection."""
        return self._admission.decide(self._pids)

    def serve(self, connection: socket.socket, peer: str) -> int:
        """Fork a worker for ``connection`` and return its pid; OSError when that fails."""
        seed = next(self._seeds)
        pid = self._children.fork(f"worker of {peer}", lambda: self._run(seed, connection, peer))
        self._pids.add(pid)
        return pid

    def note_exit(self, exited: ExitedChild) -> int | None:
        """Take note of the end of a child; return None: the RLX server goes on."""
        self._pids.discard(exited.pid)
        return None
