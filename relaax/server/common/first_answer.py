"""Waits for another server that may not have started yet."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from relaax.errors import Abandoned, BridgeError
from relaax.repeated_warning import RepeatedWarning
from relaax.server.common.stop_signal import Stop

_log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


def first_answer(
    ask: Callable[[], Answer],
    whom: str,
    stop: Stop,
    *,
    give_up_s: float,
    pause_s: float,
    waits_for: type[BridgeError] = BridgeError,
) -> Answer | None:
    """Return what ``ask`` does, as soon as that raises nothing; None if ``stop`` is set before.

    It is asked again, after ``pause_s``, where it raises ``waits_for``. Abandoned, which names
    ``whom``, after ``give_up_s``.
    """
    complaint, give_up_at = RepeatedWarning(_log), time.monotonic() + give_up_s
    while not stop.wait(0):
        try:
            return ask()
        except waits_for as error:
            complaint.say(f"waiting for {whom}: {error}")
            if time.monotonic() > give_up_at:
                raise Abandoned(whom, give_up_s, str(error), has_answered=False) from error
        stop.wait(pause_s)
    return None
