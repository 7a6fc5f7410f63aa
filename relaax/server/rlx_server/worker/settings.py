"""What a worker inherits from its RLX server."""

import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from relaax.algorithm_base import BridgeBase, ConfigBase
from relaax.failure_log import FailureLog
from relaax.protocol import MessageConnection
from relaax.replay.client.spread import SpreadWriter, writer_to
from relaax.server.common.algorithm_loader import Algorithm

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkerSettings:
    """The algorithm, where its parameter server is, and what connections may do."""

    algorithm: Algorithm
    config: ConfigBase
    parameter_server: str
    #: After so many seconds a connection is closed at the next end of an episode; None keeps it.
    timeout_s: float | None
    #: Makes what carries messages out of an accepted connection, and owns it from then on.
    open_connection: Callable[[socket.socket], MessageConnection]
    max_frame_bytes: int
    max_environments: int
    #: Where experience is delivered, for an algorithm that has a learner.
    deliver_to: Sequence[str] = ()
    #: Whether steps that are not taken at once are dropped.
    drops_experience: bool = False
    #: How long a parameter server may be away that has answered once.
    give_up_s: float = 3600.0
    #: What the algorithm is called in messages.
    algorithm_name: str = "of this server"
    #: What the algorithm raises; all workers that are forked after this was made know it.
    failures: FailureLog = field(default_factory=lambda: FailureLog(_log))

    def replay_writer(
        self, bridge: BridgeBase, number: int, stops: Callable[[], bool]
    ) -> SpreadWriter:
        """Return what delivers steps of worker ``number``; ``bridge`` takes metrics of it.

        When the worker ``stops``, acting waits no longer for the replay.
        """
        return writer_to(
            self.deliver_to,
            self.algorithm.replay_spec(self.config).schema,
            bridge.metrics(),
            first=number,
            drops=self.drops_experience,
            stops=stops,
        )

    def stub(self) -> BridgeBase:
        """Return a stub for the parameter server; only after the fork, since gRPC has threads."""
        return self.algorithm.BridgeControl().parameter_server_stub(self.parameter_server)
