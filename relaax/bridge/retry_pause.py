"""How calls wait for a server that is away."""

import logging
import threading

from relaax.repeated_warning import RepeatedWarning

#: How long after a call that failed the next one is made: at first, and when many have.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0

#: Why calls wait is said when it changes, and so often while it does not.
SAY_AGAIN_S = 60.0


class RetryPause:
    """Pauses between the calls of one method, which fail until the server is back.

    Each pause is longer than the one before, also where a caller has given up meanwhile and calls
    again. Methods have each their own: one may be answered while another one is not.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._complaint = RepeatedWarning(log, SAY_AGAIN_S)
        self._pause_s = FIRST_PAUSE_S

    def reset(self) -> bool:
        """Take note of an answer; return whether it was said before that there is none."""
        self._pause_s = FIRST_PAUSE_S
        return self._complaint.forget()

    def wait(self, why: str, until: threading.Event) -> None:
        """Say why the call has failed, if that is new, and pause, or ``until`` that is set."""
        self._complaint.say(why)
        until.wait(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
