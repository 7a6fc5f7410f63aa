"""Where connections are until they have proved that they may be served."""

import logging
import select
import socket
from collections.abc import Callable, Iterator

from relaax.errors import AccessDenied, ProtocolError
from relaax.protocol import FrameConnection, PeerClosed
from relaax.protocol.binary import ErrorCode
from relaax.server.rlx_server.entrance import Entrance, Guard, TurnedAway
from relaax.server.rlx_server.tally import ACCESS_DENIED, TURNED_AWAY, Row, private_row
from relaax.telemetry.throttled_log import of_kind

_log = logging.getLogger(__name__)

#: So many connections wait here at most; then the one goes that has been here longest.
MOST_WAITING = 1024


class Lobby:
    """Holds silent connections, at the cost of a descriptor and a few kilobytes each.

    An event loop polls ``fileno``, and calls ``proved`` when that is readable, and once a second.
    ``cells`` of ``row`` count the connections that were closed here for nonsense, or silence, and
    those without a valid token or certificate, each at once, also if it does not wait for its
    answer. ``on_end`` is called with the address of each client whose connection ends here.
    """

    def __init__(
        self,
        guard: Guard,
        open_connection: Callable[[socket.socket], FrameConnection],
        row: Row | None = None,
        cells: tuple[int, int] = (TURNED_AWAY, ACCESS_DENIED),
        on_end: Callable[[str], object] = lambda peer: None,
    ) -> None:
        self._guard = guard
        self._open_connection = open_connection
        self._poll = select.epoll()
        #: By descriptor, the longest waiting first.
        self._waiting: dict[int, Entrance] = {}
        self._row = row or private_row()
        self._turned_away, self._denied = cells
        self._on_end = on_end

    def __len__(self) -> int:
        """Return how many connections wait."""
        return len(self._waiting)

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._poll.fileno()

    def enter(self, sock: socket.socket, peer: str, refusal: str | None = None) -> None:
        """Take an accepted connection, which is this lobby's from then on.

        ``refusal`` is the message for a connection that is refused already, whatever it proves.
        """
        try:
            messages = self._open_connection(sock)
        except OSError as error:  # its client has left again
            _log.info("lost the connection from %s: %s", peer, error, extra=of_kind("lost"))
            sock.close()
            self._on_end(peer)
            return
        if len(self._waiting) >= MOST_WAITING:
            text = f"{MOST_WAITING:,} others wait that have not begun, either"
            others = TurnedAway(text, "crowd")
            self._end(next(iter(self._waiting.values())), others)
        self._waiting[messages.fileno()] = Entrance(messages, peer, self._guard, refusal)
        self._poll.register(messages.fileno(), select.EPOLLIN)

    def proved(self, looks_at_all: bool = False) -> Iterator[Entrance]:
        """Yield the connections that may be served now: each is here until it is yielded.

        So a process that is forked for one of them closes its copies of all others. With
        ``looks_at_all``, silent connections are checked, too, for their deadlines.
        """
        come = [number for number, _ in self._poll.poll(0)]
        has_come = set(come)
        for number in list(self._waiting) if looks_at_all else come:
            entrance = self._waiting.get(number)
            if entrance is not None and self._passes(number, entrance, number in has_come):
                self._leave(number)
                yield entrance

    def turn_away(self) -> None:
        """Close all connections."""
        for number, entrance in list(self._waiting.items()):
            self._leave(number)
            entrance.messages.close()
            self._on_end(entrance.peer)

    def close(self) -> None:
        """Close this process' descriptors; in another one the connections stay open."""
        for entrance in self._waiting.values():
            entrance.messages.release()
        self._waiting.clear()
        self._poll.close()

    def _passes(self, number: int, entrance: Entrance, has_come: bool) -> bool:
        was_denied = entrance.is_denied
        try:
            return entrance.passes(has_come)
        except (AccessDenied, ProtocolError, OSError) as error:
            self._end(entrance, error)
            return False
        finally:
            self._row.add(self._denied, entrance.is_denied and not was_denied)

    def _end(self, entrance: Entrance, error: Exception) -> None:
        self._leave(entrance.messages.fileno())
        if isinstance(error, AccessDenied):  # it has been logged
            entrance.refuse(ErrorCode.ACCESS, f"{error}")
        elif isinstance(error, ProtocolError):
            if not isinstance(error, TurnedAway):  # strangers' messages make no new kinds
                error = TurnedAway(str(error), "nonsense")
            _log.warning(
                "closing the connection from %s: %s", entrance.peer, error,
                extra=of_kind(error.kind),
            )  # fmt: skip
            entrance.refuse(error.code, str(error))
            self._row.add(self._turned_away, entrance.refusal is None)
        else:
            if not isinstance(error, PeerClosed):
                _log.info(
                    "lost the connection from %s: %s", entrance.peer, error, extra=of_kind("lost")
                )
            entrance.messages.close()
        self._on_end(entrance.peer)

    def _leave(self, number: int) -> None:
        del self._waiting[number]
        self._poll.unregister(number)
