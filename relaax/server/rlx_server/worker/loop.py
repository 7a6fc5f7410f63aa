"""The event loop of a worker: it reads, answers all that are ready together, and never waits."""

import logging
import os
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from relaax.errors import AgentError, NoRoom, ProtocolError
from relaax.net.access import Right
from relaax.protocol import MessageConnection, binary
from relaax.protocol.binary import ErrorCode
from relaax.server.rlx_server.entrance import NOT_ANY_MORE
from relaax.server.rlx_server.handover import Inbox
from relaax.server.rlx_server.lobby import Lobby
from relaax.server.rlx_server.tally import (
    CONNECTIONS,
    ENVIRONMENTS,
    RESTS,
    TURN_BEGAN,
    WorkerRow,
    private_row,
)
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.answers import Answer
from relaax.server.rlx_server.worker.connection import Connection
from relaax.server.rlx_server.worker.requests import Request
from relaax.server.rlx_server.worker.responder import responders_of
from relaax.server.rlx_server.worker.session import Session
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.server.rlx_server.worker.stopping import StopRequest
from relaax.steps import Steps
from relaax.telemetry.throttled_log import of_kind

_log = logging.getLogger(__name__)

#: How often messages that have begun are looked at, whether they are overdue.
SWEEP_S = 1.0

#: Errors that one client, or its agent, can cause, and that end its connection alone.
_CLIENTS_FAULTS = (ProtocolError, binary.Error, NoRoom, AgentError, OSError)

#: So many metrics of a connection are handled in a turn, if they have come: others wait meanwhile.
METRICS_A_TURN = 16

#: After a longer turn, the next one may not read all messages of clients.
LONG_TURN_S = 1.0


class Worker:
    """Serves connections until it is asked to stop.

    With an ``inbox`` it takes connections from there, until that is closed; without one it ends
    with its last connection. ``make_agents`` is called before the first environment comes. Events
    are counted in ``row``. Where ``stop`` asks it to drain, it closes each connection at the end of
    an episode.

    The loop never waits for a client: it reads available bytes, keeps unsent ones until the client
    takes them, and closes a connection whose message takes too long. At most one message of a
    connection that is answered is handled in a turn, and none while an answer is unsent. Metrics
    are not answered, so that only this end can slow down a client with too many: its connection
    rests for the remainder of the second.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        make_agents: Callable[[], Agents],
        stop: StopRequest,
        inbox: Inbox | None = None,
        row: WorkerRow | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._row = row or private_row()
        self._clock = clock
        self._stop = stop
        self._inbox = inbox
        self._responders = responders_of(settings, make_agents, inbox is not None, self._row)
        #: By descriptor.
        self._connections: dict[int, Connection] = {}
        #: Connections whose next message has been read already, so that no descriptor shows it.
        self._buffered: dict[int, Connection] = {}
        #: Connections that are not polled before the next sweep.
        self._resting: set[Connection] = set()
        #: Connections that have not proved yet that they may be served.
        self._lobby = Lobby(
            settings.guard, settings.open_connection, self._row, on_end=self._note_ended
        )
        #: Connections whose first message has not come yet.
        self._silent = 0
        self._limits = settings.limits
        self._tokens = settings.guard.tokens
        #: Of the file of tokens, when connections were compared with it.
        self._generation = 0
        self._sweep_at = self._note_at = 0.0
        #: Whether the turn before was a long one.
        self._is_behind = False
        #: Whether all connections have been told to leave.
        self._drains = False
        self._poll = select.epoll()
        self._poll.register(stop.fileno(), select.EPOLLIN)
        self._poll.register(self._lobby.fileno(), select.EPOLLIN)
        if inbox is not None:
            self._poll.register(inbox.fileno(), select.EPOLLIN)

    def add(
        self, messages: MessageConnection, peer: str, token_digest: bytes | None = None
    ) -> None:
        """Serve a connection, which has proved that it may be served.

        It is served as long as the token of that digest is allowed; if None, without a token.
        """
        number = messages.fileno()
        responders, begun = self._responders, partial(self._note_begun, messages)
        session = Session(number, self._settings, responders.of, begun)
        connection = Connection(messages, session, peer, self._settings.timeout_s)
        connection.token_digest = token_digest
        self._poll.register(connection.descriptor, select.EPOLLIN)
        self._connections[connection.descriptor] = connection
        self._silent += 1
        if messages.has_message:
            self._buffered[connection.descriptor] = connection
        if self._drains:
            connection.leave_soon()

    def accept(self, sock: socket.socket, peer: str) -> None:
        """Serve an accepted connection as soon as it has proved that it may be served."""
        self._lobby.enter(sock, peer)

    def run(self) -> None:
        """Serve until asked to stop, or until there is no more to do."""
        if self._inbox is not None:
            self._responders.training.prepare()
            self._inbox.report(0)
        self._stop.serves = True
        while self._goes_on():
            self._turn()

    def part_from_all(self, code: ErrorCode, text: str) -> None:
        """Close all connections, with a reason."""
        for connection in list(self._connections.values()):
            self._forget(connection)
            connection.part(code, text)

    def close(self) -> None:
        """Close all connections, with the reason if there is one, and end the agents."""
        if self._stop.reason is not None:
            self.part_from_all(self._stop.reason.code, self._stop.reason.text)
        for connection in list(self._connections.values()):
            self._close(connection)
        self._lobby.turn_away()
        self._lobby.close()
        self._poll.close()
        self._responders.close()

    def _goes_on(self) -> bool:
        if self._stop.reason is not None:
            return False
        return bool(self._connections) if self._inbox is None else self._inbox.is_open

    def _turn(self) -> None:
        """Handle all messages that have come, and answer their steps together."""
        self._row.note_now(TURN_BEGAN)
        if self._stop.drains and not self._drains:
            self._drain()
        if len(self._connections) > 1 and not self._responders.training.learns:
            os.sched_yield()  # more messages come meanwhile: see BatchAgentBase.learns
        arrived, self._buffered = self._buffered, {}
        most = len(self._connections) + 3  # so that no message is left to the next turn
        events = self._poll.poll(0 if arrived else SWEEP_S, most)
        for descriptor, event in events:
            connection = self._connections.get(descriptor)
            if connection is None:
                self._take_from(descriptor)
            elif event & select.EPOLLOUT:
                self._flush(connection)
            else:
                arrived[descriptor] = connection
        began_at = self._clock()
        received = [self._receive(connection) for connection in arrived.values()]
        requests = [request for request in received if request is not None]
        if began_at >= self._sweep_at:
            moving = {descriptor for descriptor, _ in events} if self._is_behind else set()
            self._sweep(began_at, moving | {request.session.number for request in requests})
            requests = [request for request in requests if self._serves(request.session)]
        if requests:
            self._answer(requests, began_at)
        now = self._clock()
        self._is_behind = now - began_at > LONG_TURN_S
        if now >= self._note_at:  # when the messages before it are answered
            self._compare_tokens()
            self._note_connected(now)
        if self._inbox is not None:
            self._inbox.report(self._responders.environments + self._silent, len(self._lobby))

    def _serves(self, session: Session) -> bool:
        connection = self._connections.get(session.number)
        return connection is not None and connection.session is session

    def _answer(self, requests: list[Request], arrived_at: float) -> None:
        for answer in self._responders.answer(requests, arrived_at):
            connection = self._connections[answer.session.number]
            if isinstance(answer, Answer):
                self._reply(connection, answer)
            else:
                self._drop(connection, answer.error)

    def _take_from(self, descriptor: int) -> None:
        """Take connections and signals, everything but messages of served connections."""
        if descriptor == self._lobby.fileno():
            self._take_from_lobby()
        elif self._inbox is None or descriptor != self._inbox.fileno():
            self._stop.listen()  # the next turn checks it
        else:
            for sock, peer in self._inbox.take():
                self.accept(sock, peer)

    def _take_from_lobby(self, looks_at_all: bool = False) -> None:
        for entrance in self._lobby.proved(looks_at_all):
            self.add(entrance.messages, entrance.peer, entrance.token_digest)

    def _note_ended(self, peer: str) -> None:
        if self._inbox is not None:
            self._inbox.note_closed(peer)

    def _receive(self, connection: Connection) -> Request | None:
        """Return the steps that a client has sent, if they are there; handle all other messages."""
        for _ in range(METRICS_A_TURN):
            try:
                payload = connection.messages.receive_now()
                if payload is None:
                    return None
                connection.handled += 1
                taken = connection.session.take(payload)
                if isinstance(taken, bytes):
                    self._send(connection, taken)
                    return None
            except _CLIENTS_FAULTS as error:
                self._drop(connection, error)
                return None
            if taken is not None:
                return self._request(connection, taken)
            connection.metrics += 1
            if connection.metrics >= self._limits.most_metrics:
                self._rest(connection)
                return None
            if not connection.messages.has_message:
                break
        self._go_on(connection)
        return None

    def _rest(self, connection: Connection) -> None:
        """Take no more from a connection before the next sweep; meanwhile TCP holds its client."""
        self._row.add(RESTS)
        connection.note_rest(self._limits.most_metrics)
        self._poll.unregister(connection.descriptor)
        self._resting.add(connection)

    def _end_rests(self) -> None:
        rested, self._resting = self._resting, set()
        for connection in rested:
            self._poll.register(connection.descriptor, select.EPOLLIN)
            self._go_on(connection)

    def _note_begun(self, messages: MessageConnection, most_bytes: int) -> None:
        messages.max_received_bytes = most_bytes
        self._silent -= 1

    def _request(self, connection: Connection, steps: Steps) -> Request | None:
        """Return a request; None in version 1 where the time is up and an episode would begin."""
        request = Request(connection.session, steps)
        responder = self._responders.of(connection.session.evaluation)
        if connection.time_is_up and responder.ends_episode(request):
            if not connection.session.knows_errors and steps.actions:
                responder.give_up(request.slots)
                self._close(connection)
                return None
            connection.is_leaving = True
        return request

    def _reply(self, connection: Connection, answer: Answer) -> None:
        try:
            goodbye = connection.goodbye() if connection.is_leaving else None
            connection.send(self._responders.training.encoded(answer))
            self._send(connection, goodbye)
        except _CLIENTS_FAULTS as error:
            self._drop(connection, error)

    def _send(self, connection: Connection, payload: bytes | None) -> None:
        """Send a message, if there is one; go on when everything is on its way."""
        if payload is not None:
            connection.send(payload)
        if connection.messages.is_unsent:
            self._poll.modify(connection.descriptor, select.EPOLLOUT)
        else:
            self._go_on(connection)

    def _flush(self, connection: Connection) -> None:
        """Send more of the unsent bytes."""
        try:
            connection.messages.flush()
        except _CLIENTS_FAULTS as error:
            self._drop(connection, error)
            return
        if not connection.messages.is_unsent:
            self._poll.modify(connection.descriptor, select.EPOLLIN)
            self._go_on(connection)

    def _go_on(self, connection: Connection) -> None:
        """Look at messages that have been read already, or close a connection that leaves."""
        if connection.is_leaving:
            self._close(connection)
        elif connection.messages.has_message:
            self._buffered[connection.descriptor] = connection

    def _sweep(self, now: float, moving: set[int]) -> None:
        """Close connections whose messages take too long, except ``moving`` ones.

        Resting connections go on: their next message may lie there already.
        """
        elapsed_s = now - self._sweep_at + SWEEP_S
        self._sweep_at = now + SWEEP_S
        self._take_from_lobby(looks_at_all=True)
        for descriptor, connection in list(self._connections.items()):
            handled, connection.handled, connection.metrics = connection.handled, 0, 0
            try:
                self._limits.require_patience(handled, max(elapsed_s, SWEEP_S))
                if descriptor not in moving and connection not in self._resting:
                    connection.messages.require_progress(now)
            except _CLIENTS_FAULTS as error:
                self._drop(connection, error)
        self._end_rests()

    def _drain(self) -> None:
        """Close connections that have said nothing; let all others leave after an episode."""
        self._drains = True
        self._lobby.turn_away()
        for connection in list(self._connections.values()):
            if connection.session.has_begun:
                connection.leave_soon()
            else:
                self._close(connection)

    def _note_connected(self, now: float) -> None:
        """Report the number of connections; only operators learn of evaluating ones."""
        self._note_at = now + SWEEP_S
        self._row[CONNECTIONS] = len(self._connections)
        self._row[ENVIRONMENTS] = self._responders.environments
        training = [c for c in self._connections.values() if c.session.is_training]
        self._responders.training.note_connected(len(training))

    def _compare_tokens(self) -> None:
        """Close the connections whose tokens are not in the file any more, if that has changed."""
        tokens = self._tokens
        if tokens is None or (generation := tokens.generation()) == self._generation:
            return
        self._generation = generation
        for connection in list(self._connections.values()):
            digest = connection.token_digest
            if digest is None or connection.is_leaving or tokens.allows_digest(digest, Right.PLAY):
                continue
            self._dismiss(connection)

    def _dismiss(self, connection: Connection) -> None:
        """Close a connection whose token is not allowed any more, as soon as all is sent.

        Its client may know a newer one by now. An old token is refused at the next connection.
        """
        _log.warning(
            "closing the connection from %s: %s", connection.peer, NOT_ANY_MORE,
            extra=of_kind("token ended"),
        )  # fmt: skip
        connection.is_leaving = True
        self._buffered.pop(connection.descriptor, None)
        reason = binary.encode_error(ErrorCode.GO_ELSEWHERE, NOT_ANY_MORE)
        try:
            self._send(connection, reason if connection.session.knows_errors else None)
        except _CLIENTS_FAULTS as error:
            self._drop(connection, error)

    def _drop(self, connection: Connection, error: Exception) -> None:
        """Close a connection because of an error of its client, or because it was lost."""
        self._forget(connection)
        connection.part_because_of(error)

    def _close(self, connection: Connection) -> None:
        self._forget(connection)
        connection.messages.close()

    def _forget(self, connection: Connection) -> None:
        """Serve a connection no longer; it stays open."""
        del self._connections[connection.descriptor]
        self._note_ended(connection.peer)
        self._buffered.pop(connection.descriptor, None)
        self._resting.discard(connection)
        with suppress(OSError):  # closed by the client's machine, and gone from the poll with it
            self._poll.unregister(connection.descriptor)
        if not connection.session.has_begun:
            self._silent -= 1
        connection.session.close()
