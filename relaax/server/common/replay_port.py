"""The gRPC port of a replay."""

from concurrent.futures import ThreadPoolExecutor

import grpc

from relaax.address import Address
from relaax.bridge import channel_options
from relaax.bridge.control import require_free
from relaax.replay.replay import Replay
from relaax.replay.service import ReplayServicer, method_handlers

#: Threads that answer writers and samplers. A writer whose steps do not fit yet holds one.
THREADS = 32

#: How long steps are still taken, and dropped, when learning has ended: workers end meanwhile.
LINGER_S = 1.5


class ReplayPort:
    """Serves a replay at an address; OSError if the port is taken."""

    def __init__(self, address: Address, replay: Replay) -> None:
        self._server = grpc.server(ThreadPoolExecutor(THREADS), options=channel_options.SERVER)
        self._servicer = ReplayServicer(replay)
        self._server.add_generic_rpc_handlers((method_handlers(self._servicer),))
        try:
            require_free(address)
            self._server.add_insecure_port(str(address))
        except (OSError, RuntimeError) as error:
            raise OSError(f"cannot listen at {address}: {error}") from error
        self._server.start()

    def close(self, grace_s: float = 1.0) -> None:
        """Refuse new calls, and close when the running ones are done, or after ``grace_s``."""
        self._server.stop(grace_s).wait()
        self._servicer.forget_memory()
