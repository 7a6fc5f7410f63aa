"""Receives what a server publishes."""

import logging
import threading

from relaax.replay.client.stub import ReplayAway
from relaax.replay.memoire.stub import MemoireStub
from relaax.replay.memoire.topics import NOTHING, Message
from relaax.replay.memoire.waits import waits
from relaax.replay.replay import NotReady

_log = logging.getLogger(__name__)


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
