"""The newest message of each topic."""

import secrets
import threading
from dataclasses import dataclass

from relaax.net.payloads import Buffer

#: A topic without a message has this version.
NOTHING = 0


@dataclass(frozen=True)
class Message:
    """What was published, and a number that no other message of its topic has."""

    version: int
    data: Buffer


def message_of(topic: str | Buffer, data: str | Buffer | None) -> tuple[str, bytes]:
    """Return topic and message of ``pub_bytes(topic, data)``, or of ``pub_bytes(data)``."""
    if data is None:
        topic, data = "", topic
    name = topic if isinstance(topic, str) else bytes(topic).decode()
    return name, data.encode() if isinstance(data, str) else bytes(data)


class Topics:
    """Messages by topic, of which the newest is kept: a late subscriber gets that one."""

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._next = secrets.randbits(62) + 1

    def publish(self, topic: str, data: Buffer) -> None:
        """Keep a message in place of the one before."""
        with self._changed:
            self._next += 1
            self.put(topic, Message(self._next, data))

    def put(self, topic: str, message: Message) -> None:
        """Keep a message that has its number already."""
        with self._changed:
            self._messages[topic] = message
            self._changed.notify_all()

    def newest(self, topic: str, known: int, timeout_s: float) -> Message | None:
        """Return the newest message, unless its version is ``known``; None if there is none.

        Wait for it for as long as ``timeout_s``.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has(topic, known), timeout_s)
            return self._messages[topic] if self._has(topic, known) else None

    def close(self) -> None:
        """Let what waits for messages go on without."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _has(self, topic: str, known: int) -> bool:
        return topic in self._messages and self._messages[topic].version != known
