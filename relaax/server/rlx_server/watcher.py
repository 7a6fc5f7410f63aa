"""A process that asks the parameter server whether the training is over."""

import logging
import time

from relaax.algorithm_base import Phase
from relaax.errors import BridgeError
from relaax.server.rlx_server.worker.settings import WorkerSettings

_log = logging.getLogger(__name__)

#: Exit status of the watcher when the training is over: the RLX server closes too.
TRAINING_IS_OVER = 10

#: How often the watcher asks.
WATCH_INTERVAL_S = 0.5


def watch_parameter_server(settings: WorkerSettings) -> int:
    """Return when the parameter server closes after the training.

    In a process of its own, so that the RLX server itself never starts gRPC.
    """
    stub = settings.stub()
    complaint = ""
    while True:
        try:
            if stub.phase() is Phase.CLOSING:
                stub.close()
                return TRAINING_IS_OVER
        except BridgeError as error:
            if str(error) != complaint:  # asked again, it would say the same
                complaint = str(error)
                _log.warning("%s", error)
        time.sleep(WATCH_INTERVAL_S)
