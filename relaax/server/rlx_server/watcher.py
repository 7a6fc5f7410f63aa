"""A process that asks the parameter server whether the training is over."""

import logging
import time

from relaax.algorithm_base import Phase
from relaax.errors import BridgeError
from relaax.server.rlx_server.tally.state import Cell, ServerState
from relaax.server.rlx_server.worker.settings import WorkerSettings

_log = logging.getLogger(__name__)

#: Exit status of the watcher when the training is over: the RLX server closes too.
TRAINING_IS_OVER = 10

#: How often the watcher asks.
WATCH_INTERVAL_S = 0.5


def watch_parameter_server(settings: WorkerSettings, state: ServerState) -> int:
    """Return when the parameter server closes after the training; keep ``state`` up to date.

    In a process of its own, so that the RLX server itself never starts gRPC.
    """
    stub = settings.stub()
    complaint = ""
    while True:
        try:
            if stub.phase() is Phase.CLOSING:
                stub.close()
                return TRAINING_IS_OVER
            state.note_now(Cell.PARAMETER_SERVER_ANSWERED)
        except BridgeError as error:
            state.note_now(Cell.PARAMETER_SERVER_WAS_AWAY)
            if str(error) != complaint:  # asked again, it would say the same
                complaint = str(error)
                _log.warning("%s", error)
        time.sleep(WATCH_INTERVAL_S)
