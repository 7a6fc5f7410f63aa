"""Receives what a server publishes."""

import logging
import threading
from collections.abc import Iterator
from time import monotonic

from relaax.compat.memoire.entry import MemoryClosed
from relaax.compat.memoire.service import LONGEST_WAIT_S
from relaax.compat.memoire.stub import MemoireStub
from relaax.compat.memoire.topics import NOTHING, Message
from relaax.replay.client.stub import ReplayAway
from relaax.replay.replay import NotReady

#: Pause between two questions, where a server answers at once or not at all.
PAUSE_S = 0.2

_log = logging.getLogger(__name__)


def waits(timeout_s: float | None, closed: threading.Event) -> Iterator[float]:
    """Yield how long each further wait may be, at least once, until ``timeout_s`` are over.

    None waits for ever. MemoryClosed once ``closed`` is set.
    """
    deadline = None if timeout_s is None else monotonic() + timeout_s
    left_s = LONGEST_WAIT_S if deadline is None else max(deadline - monotonic(), 0.0)
    while True:
        begun = monotonic()
        yield min(left_s, LONGEST_WAIT_S)
        if deadline is not None:
            left_s = deadline - monotonic()
            if left_s <= 0:
                return
        if closed.wait(max(0.0, min(left_s, PAUSE_S) - (monotonic() - begun))):
            raise MemoryClosed("the client was closed")


class Subscriber:
    """The topics of a server; each message is returned once."""

    def __init__(self, stub: MemoireStub, closed: threading.Event) -> None:
        self._stub = stub
        self._closed = closed
        self._known: dict[str, int] = {}

    def next(self, topic: str, timeout_s: float | None) -> Message:
        """Return the newest message of a topic, and wait for it if it was returned before.

        NotReady after ``timeout_s``, also while the server is away; MemoryClosed.
        """
        for left_s in waits(timeout_s, self._closed):
            message = self._newer(topic, left_s)
            if message is not None:
                self._known[topic] = message.version
                return message
        raise NotReady(f"nothing new was published under {topic!r} in time")

    def _newer(self, topic: str, left_s: float) -> Message | None:
        try:
            return self._stub.fetch(topic, self._known.get(topic, NOTHING), left_s)
        except ReplayAway as error:
            _log.debug("waiting for %r: %s", topic, error)
            return None
        except ValueError:  # what gRPC raises when its channel is closed
            if not self._closed.is_set():
                raise
            return None
