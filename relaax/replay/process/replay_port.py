"""The gRPC port of a replay."""

from relaax.address import Address
from relaax.net import channel_options
from relaax.net.guarded_server import GuardedServer
from relaax.replay.client.writer import MOST_STEPS_AT_ONCE
from relaax.replay.replay import Replay
from relaax.replay.service import ReplayServicer, method_handlers

#: Threads that answer writers and samplers. A writer that waits for room holds one.
THREADS = 32

#: How long steps are still taken, and dropped, when learning has ended: workers end meanwhile.
LINGER_S = 1.5


class ReplayPort:
    """Serves a replay at an address; OSError if the port is taken.

    A message may be twice as large as the most steps that a writer sends at once.
    """

    def __init__(self, address: Address, replay: Replay) -> None:
        most_bytes = channel_options.most_bytes_of(MOST_STEPS_AT_ONCE * replay.schema.most_bytes)
        self._servicer = ReplayServicer(replay, replay.times)
        self._server = GuardedServer(
            THREADS, [method_handlers(self._servicer)], most_bytes=most_bytes
        )
        self._server.start(str(address))

    def close(self, grace_s: float = 1.0) -> None:
        """Refuse new calls, and close when the running ones are done, or after ``grace_s``."""
        self._server.stop(grace_s).wait()
        self._servicer.forget_memory()
