"""Asks the parameter server whether the training is over, in a process of its own."""

import logging
import time

from relaax.algorithm_base import Phase
from relaax.errors import Abandoned, BridgeError
from relaax.server.rlx_server.places import PlaceTable
from relaax.server.rlx_server.tally import Cell, Row
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: Exit status of the watcher when the training is over: the RLX server closes too.
TRAINING_IS_OVER = 10

#: Exit status of the watcher when nobody knows whether the training goes on.
PARAMETER_SERVER_IS_GONE = 11

#: How often the watcher asks.
WATCH_INTERVAL_S = 0.5

#: How long one question waits for a parameter server that is away.
WAIT_S = 1.0


def watch_parameter_server(settings: WorkerSettings, state: Row, places: PlaceTable) -> int:
    """Return when the parameter server closes after the training.

    Meanwhile ``state`` is kept up to date, and the server's ``places`` among all RLX servers.

    Exit if the parameter server stays away for ``give_up_s``, also at the start: the training may
    have ended meanwhile.

    In a process of its own, so that the RLX server itself never starts gRPC.
    """
    stub = settings.stub()
    stub.wait_at_most(WAIT_S)
    complaint, started_at = RepeatedWarning(_log), time.monotonic()
    while True:
        try:
            if stub.phase() is Phase.CLOSING:
                stub.close()
                return TRAINING_IS_OVER
            state.note_now(Cell.PARAMETER_SERVER_ANSWERED)
            held = places.held()
            places.note(held, stub.places(held))
            complaint.forget()
        except BridgeError as error:
            state.note_now(Cell.PARAMETER_SERVER_WAS_AWAY)
            complaint.say(str(error))
            heard_at = state[Cell.PARAMETER_SERVER_ANSWERED]
            if time.monotonic() - (heard_at or started_at) > settings.give_up_s:
                _log.error(
                    "%s: the RLX server stops",
                    Abandoned(
                        "the parameter server",
                        settings.give_up_s,
                        str(error),
                        has_answered=heard_at > 0,
                    ),
                )
                return PARAMETER_SERVER_IS_GONE
        time.sleep(WATCH_INTERVAL_S)
