"""What runs in the RLX server's children."""

import logging
import socket
import time
from dataclasses import dataclass

from relaax.algorithm_base import ConfigBase, Phase
from relaax.common.errors import BridgeError, ConfigurationError, ProtocolError
from relaax.common.protocol.framing import FrameConnection
from relaax.server.common.algorithm_loader import Algorithm
from relaax.server.rlx_server.worker import Worker

_log = logging.getLogger(__name__)

#: Exit status of the watcher when the training is over: the RLX server closes too.
TRAINING_IS_OVER = 10

#: How often the watcher asks.
WATCH_INTERVAL_S = 0.5


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker inherits from its RLX server."""

    algorithm: Algorithm
    config: ConfigBase
    parameter_server: str
    timeout_s: float | None
    max_frame_bytes: int


def run_worker(
    settings: WorkerSettings, worker_number: int, connection: socket.socket, peer: str
) -> int:
    """Serve one client to its end and return an exit status."""
    settings.config.worker_number = worker_number
    frames = FrameConnection(connection, max_frame_bytes=settings.max_frame_bytes)
    stub = settings.algorithm.BridgeControl().parameter_server_stub(settings.parameter_server)
    try:
        agent = settings.algorithm.Agent(config=settings.config, parameter_server=stub)
        try:
            Worker(agent, frames, settings.timeout_s).run()
        finally:
            agent.close()
    except ProtocolError as error:
        _log.warning("closing the connection from %s: %s", peer, error)
    except (BridgeError, ConfigurationError) as error:
        _log.error("closing the connection from %s: %s", peer, error)
    except OSError as error:
        _log.info("lost the connection from %s: %s", peer, error)
    finally:
        frames.close()
        stub.close()
    return 0


def watch_parameter_server(settings: WorkerSettings) -> int:
    """Return when the parameter server closes after the training.

    A process of its own, so that the RLX server itself never starts gRPC.
    """
    stub = settings.algorithm.BridgeControl().parameter_server_stub(settings.parameter_server)
    while True:
        try:
            if stub.phase() is Phase.CLOSING:
                stub.close()
                return TRAINING_IS_OVER
        except BridgeError as error:
            _log.warning("%s", error)
        time.sleep(WATCH_INTERVAL_S)
