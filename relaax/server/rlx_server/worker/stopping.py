"""How a worker is asked to stop: by a signal, and with a deadline."""

import logging
import os
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass

from relaax.protocol.binary import ErrorCode
from relaax.server.rlx_server.children import DRAIN, END_OF_TRAINING, STOP

_log = logging.getLogger(__name__)

#: How long a worker may take to close its connections, to end learning, which takes up to 2 s, and
#: to send its last metrics, which takes as long again. The RLX server waits longer than this.
WORKER_STOP_DEADLINE_S = 5.0


@dataclass(frozen=True)
class Reason:
    """The message to clients before their connections are closed."""

    code: ErrorCode
    text: str


_REASONS = {
    STOP: Reason(ErrorCode.GO_ELSEWHERE, "it stops"),
    END_OF_TRAINING: Reason(ErrorCode.TRAINING_IS_OVER, "the training is over"),
}


class StopRequest:
    """Whether this process has been asked to stop or to drain, and a descriptor that shows it.

    A process that has not ended by itself when ``WORKER_STOP_DEADLINE_S`` is over ends at once: it
    may wait for something that does not come. Owns the handlers of its signals until it is closed.
    """

    def __init__(self) -> None:
        self.reason: Reason | None = None
        #: Whether connections should be let go, each at the end of an episode.
        self.drains = False
        #: Whether clients are served. A process that only waits, for example for its parameter
        #: server, has nothing to close in order, and ends at once.
        self.serves = False
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._take) for number in (*_REASONS, DRAIN)}

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._reader.fileno()

    def listen(self) -> None:
        """Take the bytes that have made the descriptor readable."""
        with suppress(BlockingIOError):
            self._reader.recv(4096)

    def close(self) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        self._reader.close()
        self._writer.close()

    def _take(self, number: int, frame: object) -> None:
        if not self.serves:
            os._exit(0)
        if number == DRAIN:
            self.drains = True
        elif self.reason is None:
            self.reason = _REASONS[signal.Signals(number)]
            watchdog = threading.Timer(WORKER_STOP_DEADLINE_S, _end_at_once)
            watchdog.daemon = True
            watchdog.start()


def _end_at_once() -> None:
    _log.warning("the worker did not stop within %g s: it ends at once", WORKER_STOP_DEADLINE_S)
    os._exit(0)
