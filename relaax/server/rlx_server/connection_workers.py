"""A worker for each connection: forked when it is accepted, gone with it."""

from collections import Counter
from collections.abc import Callable, Iterator

from relaax.address import host_of
from relaax.protocol import FrameConnection
from relaax.server.rlx_server.admission import AdmissionDecision, WorkerAdmission
from relaax.server.rlx_server.children import Children, ExitedChild, WorkerPool
from relaax.server.rlx_server.tally import Tally, WorkerRow


class ConnectionWorkers(WorkerPool):
    """Forks a worker for each connection.

    It is given the connection, its client's address, and the digest of the token that it has shown,
    if it has.
    """

    #: Connections can be taken at any time.
    is_open = has_room = True
    #: A worker is forked for a connection that has proved that it may be served.
    take_unproved = False

    def __init__(
        self,
        children: Children,
        admission: WorkerAdmission,
        seeds: Iterator[int],
        tally: Tally,
        run: Callable[[int, WorkerRow, FrameConnection, str, bytes | None], int],
    ) -> None:
        super().__init__(children, seeds, tally, run)
        self._admission = admission
        #: By pid: its client's address; and how many there are of each.
        self._hosts: dict[int, str] = {}
        self._by_host: Counter[str] = Counter()

    @property
    def are_idle(self) -> bool:
        """Whether no connection is served."""
        return not self._hosts

    def start_due(self) -> None:
        """Do nothing: a worker starts with its connection."""

    def admit(self) -> AdmissionDecision:
        """Decide whether there is memory for one more connection."""
        return self._admission.decide(self.pids)

    @property
    def connections(self) -> int:
        """How many connections are served."""
        return len(self._hosts)

    def connections_of(self, host: str) -> int:
        """Return how many of them come from an address."""
        return self._by_host[host]

    def serve(
        self, connection: FrameConnection, peer: str, token_digest: bytes | None = None
    ) -> int:
        """Fork a worker for ``connection`` and return its pid; OSError when that fails."""
        pid = self.fork(f"worker of {peer}", connection, peer, token_digest)
        self._hosts[pid] = host_of(peer)
        self._by_host[self._hosts[pid]] += 1
        return pid

    def note_exit(self, exited: ExitedChild) -> int | None:
        """Take note of the end of a child; return None: the RLX server goes on."""
        if exited.pid in self._hosts:
            self.give_back(exited.pid)
            self._by_host -= Counter([self._hosts.pop(exited.pid)])
        return None
