"""A worker that serves a test: on a thread, or turn by turn; its clients, and what it counted."""

import contextlib
import logging
import socket
import threading
import time
from array import array
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from json_requests import encode_request

from relaax.algorithm_base import AgentBase, BatchAgentBase
from relaax.errors import InvalidState
from relaax.protocol import FrameConnection, MessageConnection, binary
from relaax.protocol.binary import Answers, ErrorCode, Hello
from relaax.protocol.framing import DEFAULT_MAX_FRAME_BYTES
from relaax.protocol.json import codec as json_codec
from relaax.server.rlx_server.handover import Inbox, Outbox, channel
from relaax.server.rlx_server.tally import WIDTH, WorkerRow, kept_steps
from relaax.server.rlx_server.worker.agents import Agents, SeparateAgents
from relaax.server.rlx_server.worker.loop import Worker
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.server.rlx_server.worker.stopping import Reason
from relaax.steps import Steps
from relaax.telemetry.metrics import Metrics
from relaax.telemetry.throttled_log import FailureLog

DEADLINE_S = 20.0

STOPS = Reason(ErrorCode.GO_ELSEWHERE, "it stops")


class StoredMetrics(Metrics):
    """Keeps all scalars."""

    def __init__(self) -> None:
        self.values: list[tuple[str, float, float | None]] = []

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        self.values.append((name, y, x))

    def of(self, name: str) -> list[float]:
        return [y for stored, y, _ in self.values if stored == name]


class Stub:
    """Of a parameter server's stub, what agents' owners use."""

    def __init__(self) -> None:
        self.stored = StoredMetrics()
        self.is_closed = False

    def metrics(self) -> StoredMetrics:
        return self.stored

    def close(self) -> None:
        self.is_closed = True


class Oracle(BatchAgentBase):
    """Answers each environment with its slot and what it sees; keeps what each slot reported.

    A state is one number of any kind; all but bytes become float32. NaN is refused.
    """

    def __init__(self) -> None:
        #: By slot: ("reward", y), ("terminated",), ("truncated", state), ("given up",) and so on.
        self.reported: dict[int, list[tuple[Any, ...]]] = {}
        #: How many environments each evaluation was for.
        self.sizes: list[int] = []
        self.warmed: list[int] = []
        self.slots: set[int] = set()
        self.is_full = False
        self.is_closed = False

    def warm_up(self, environments: int) -> None:
        self.warmed.append(environments)

    def open(self, slots: Any) -> None:
        if self.is_full:
            raise MemoryError("36 GiB")
        assert self.slots.isdisjoint(slots.tolist())
        self.slots.update(slots.tolist())

    def close_slots(self, slots: Any) -> None:
        self.slots.difference_update(slots.tolist())

    def check(self, states: Any) -> Any:
        array = np.asarray(states)
        if array.dtype.kind not in "uif":
            raise InvalidState(f"a state is {array.dtype}, no number")
        checked = array if array.dtype == np.uint8 else array.astype(np.float32)
        if checked.shape[1:] != (1,):
            raise InvalidState(f"a state has shape {list(checked.shape[1:])}, not [1]")
        if np.isnan(checked).any():
            raise InvalidState("a state is not a number")
        return checked

    def act(self, transitions: Any, states: Any, finals: Any) -> Any:
        self.sizes.append(len(transitions.acting))
        for slot, reward in zip(transitions.stepped, transitions.rewards, strict=True):
            self._report(slot, "reward", float(reward))
        for slot in transitions.stepped[transitions.terminated]:
            self._report(slot, "terminated")
        for slot, final in zip(transitions.truncated, finals, strict=True):
            self._report(slot, "truncated", float(final[0]))
        for slot in transitions.given_up:
            self._report(slot, "given up")
        for slot, starts, state in zip(transitions.acting, transitions.starts, states, strict=True):
            self._report(slot, "start" if starts else "state", float(state[0]))
        seen = np.asarray(states, np.float64).reshape(-1)
        return np.stack([transitions.acting.astype(np.float64), seen], axis=1)

    def close(self) -> None:
        self.is_closed = True

    def _report(self, slot: Any, *what: Any) -> None:
        self.reported.setdefault(int(slot), []).append(what)


class ClientsEnd(FrameConnection):
    """The client's end of a connection; through ``sock`` go bytes that are no frames."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock, frame_timeout_s=DEADLINE_S)
        self.sock = sock


class StopOnDemand:
    """Stands in for a StopRequest, which only the main thread of a process can make."""

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self.drains = False
        self._reader, self._writer = socket.socketpair()

    def fileno(self) -> int:
        return self._reader.fileno()

    def listen(self) -> None:
        self._reader.recv(4096)

    def ask(self, reason: Reason = STOPS) -> None:
        self.reason = reason
        self._writer.send(b".")

    def ask_to_drain(self) -> None:
        self.drains = True
        self._writer.send(b".")

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


class StopAfterTurns:
    """Stops a worker after some turns, of which not one waits: its descriptor is readable."""

    drains = False

    def __init__(self) -> None:
        self.turns = 0
        self._reader, self._writer = socket.socketpair()
        self._writer.send(b".")

    @property
    def reason(self) -> Reason | None:
        if self.turns == 0:
            return STOPS
        self.turns -= 1
        return None

    def fileno(self) -> int:
        return self._reader.fileno()

    def listen(self) -> None:
        """Leave the descriptor readable."""

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


def settings(**changed: Any) -> WorkerSettings:
    """Return what a worker inherits; any spaces will do."""
    anything = SimpleNamespace(observation_space=lambda: None, action_space=lambda: None)
    values: dict[str, Any] = {
        "algorithm": None, "config": anything, "parameter_server": "", "timeout_s": None,
        "max_frame_bytes": 2**24, "max_environments": 65535,
    }  # fmt: skip
    message_timeout_s = changed.pop("message_timeout_s", DEADLINE_S)
    values |= changed
    opened = partial(
        FrameConnection,
        max_frame_bytes=values["max_frame_bytes"] or DEFAULT_MAX_FRAME_BYTES,
        frame_timeout_s=message_timeout_s,
        is_servers=True,
    )
    return WorkerSettings(**{"open_connection": opened, **values})


class ServedWorker:
    """A worker and what a test holds of it: its agents, its metrics, and the way to it.

    ``turn`` lets it take turns in the test's own thread. With ``runs`` it is on a thread instead.
    """

    def __init__(
        self,
        make_agents: Callable[[Stub], Agents],
        runs: bool = False,
        clock: Callable[[], float] = time.monotonic,
        **changed: Any,
    ) -> None:
        self.stub = Stub()
        self.stored = self.stub.stored
        self.settings = settings(**changed)
        ours, theirs = channel()
        self.outbox, self._inbox = Outbox(ours), Inbox(theirs)
        self.stop: StopOnDemand | StopAfterTurns = StopOnDemand() if runs else StopAfterTurns()
        self._clients: list[ClientsEnd] = []
        #: What operators are told, see ``tally``.
        self.cells = memoryview(array("d", [0.0]) * WIDTH)
        agents = make_agents(self.stub)
        self.worker = Worker(
            self.settings,
            lambda: agents,
            self.stop,
            self._inbox,  # type: ignore[arg-type]
            WorkerRow(self.cells, kept_steps(1).row()),
            clock,
        )
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run) if runs else None
        self._is_over = False
        if self._thread is not None:
            self._thread.start()

    def _run(self) -> None:
        try:
            self.worker.run()
        except Exception as error:
            self.error = error
        finally:
            self.worker.close()

    @property
    def load(self) -> int:
        """How many environments the worker says that it serves."""
        self.outbox.listen()
        return self.outbox.load

    def connect(self) -> ClientsEnd:
        """Return the client's end of a connection that the worker gets."""
        ours, theirs = socket.socketpair()
        with theirs:
            self.outbox.hand_over(theirs, "a test")
        self._clients.append(ClientsEnd(ours))
        return self._clients[-1]

    def turn(self, turns: int = 1) -> None:
        """Let a worker that is on no thread take turns."""
        assert isinstance(self.stop, StopAfterTurns)
        self.stop.turns = turns
        self.worker.run()

    def turn_until(self, condition: Callable[[], Any]) -> Any:
        """Let it take turns until ``condition`` is true, and return that."""
        for _ in range(100_000):
            value = condition()
            if value:
                return value
            self.turn()
        raise AssertionError("what is waited for has not happened")

    def close(self) -> None:
        """Stop the worker, and close all its connections at both ends."""
        self.end()
        for owned in (self.stop, self._inbox, self.outbox, *self._clients):
            owned.close()
        assert self.error is None, self.error

    def end(self) -> None:
        """Stop the worker with a reason; its clients can still read."""
        if self._is_over:
            return
        self._is_over = True
        if self._thread is None:
            self.worker.close()
            return
        assert isinstance(self.stop, StopOnDemand)
        self.stop.ask()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()


def serve_batches(oracle: BatchAgentBase, **options: Any) -> ServedWorker:
    """Return a worker that evaluates ``oracle`` for all connections together."""
    return ServedWorker(lambda stub: Agents(oracle, stub, act_together=True), **options)


def serve_agents(make_agent: Callable[[int], AgentBase], **options: Any) -> ServedWorker:
    """Return a worker with an agent for each environment."""
    separate = SeparateAgents(make_agent, FailureLog(logging.getLogger("agents")))
    return ServedWorker(lambda stub: Agents(separate, stub, act_together=False), **options)


class JsonClient:
    """A client of version 1."""

    def __init__(self, served: ServedWorker) -> None:
        self._served = served
        self.connection = served.connect()

    def tell(self, message: Any) -> None:
        send(self._served, self.connection, encode_request(message))

    def receive(self) -> bytes | None:
        return received(self._served, self.connection)

    def action(self) -> Any:
        payload = self.receive()
        assert payload is not None
        verb, action = json_codec.decode_utf8(payload)
        assert verb == "act"
        return action

    def score(self) -> float:
        payload = self.receive()
        assert payload is not None
        verb, score = json_codec.decode_utf8(payload)
        assert verb == "reset"
        return float(score)

    def close(self) -> None:
        self.connection.close()


class BinaryClient:
    """A client of version 2, with one number as observation of each environment."""

    def __init__(self, served: ServedWorker, environments: int = 1, **hello: Any) -> None:
        self._served = served
        self.environments = environments
        self.connection = served.connect()
        self.connection.send(binary.encode_hello(Hello("run", "test", environments, **hello)))
        welcome = self.receive()
        assert welcome is not None
        binary.decode_welcome(welcome)

    def tell(
        self, environments: Any, flags: Any, rewards: Any, states: Any = (), finals: Any = ()
    ) -> None:
        payload = encoded(environments, flags, rewards, states, finals)
        send(self._served, self.connection, payload)

    def receive(self) -> bytes | None:
        return received(self._served, self.connection)

    def answer(self) -> Answers:
        payload = self.receive()
        assert payload is not None, "the connection is closed"
        return binary.decode_answers(payload)

    def ask(self, *report: Any) -> Answers:
        self.tell(*report)
        return self.answer()

    def close(self) -> None:
        self.connection.close()


def encoded(
    environments: Any, flags: Any, rewards: Any, states: Any = (), finals: Any = ()
) -> bytes:
    """Return a message of steps; a state that is one number becomes float32 [1]."""
    return binary.encode_steps(
        Steps(
            np.array(environments, np.int64), np.array(flags, np.uint8), np.array(rewards, float),
            _states(states), _states(finals),
        )
    )  # fmt: skip


def _states(values: Any) -> Any:
    if isinstance(values, np.ndarray) and values.ndim > 1:
        return values
    return np.asarray(values, np.float32).reshape(-1, 1)


def send(served: ServedWorker, connection: FrameConnection, payload: bytes) -> None:
    """Send a message of a client, while the worker takes turns if it does not run by itself."""
    if not isinstance(served.stop, StopAfterTurns):
        connection.send(payload)
        return
    connection.send_now(payload)
    if connection.is_unsent:
        served.turn_until(lambda: connection.flush() or not connection.is_unsent)


def received(served: ServedWorker, connection: MessageConnection) -> bytes | None:
    """Return the next message to a client; None when the connection has been closed."""
    if not isinstance(served.stop, StopAfterTurns):
        return connection.receive(DEADLINE_S)
    with contextlib.suppress(ConnectionError):
        payload = served.turn_until(connection.receive_now)
        return bytes(payload)
    return None
