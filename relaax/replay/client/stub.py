"""Calls one replay server."""

from collections.abc import Sequence
from typing import Any

import grpc
import numpy as np
import numpy.typing as npt

from relaax.errors import BridgeError, ConfigurationError, TokenRefused
from relaax.net.channels import open_channel
from relaax.replay import replay_pb2, replay_pb2_grpc
from relaax.replay.replay import NotReady, ReplayState
from relaax.replay.schema import Schema
from relaax.replay.segments import SharedSamples
from relaax.replay.selectors import FloatArray, IntArray
from relaax.replay.storage import Flags
from relaax.replay.table import Sample
from relaax.replay.wire import (
    ITEMS,
    PRIORITIES,
    SERVICE_NAME,
    STEPS,
    column_messages,
    priorities_message,
    schema_of,
    state_of,
    steps_message,
)
from relaax.replay.writers import MissingSteps, UnknownWriter

Array = npt.NDArray[Any]

#: Status codes while a server is away, or a connection breaks; INTERNAL if it breaks within an
#: answer.
AWAY = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.INTERNAL,
)


#: gRPC's own words for a message that is too large: sending it again does not help.
TOO_LARGE = "larger than max"


class ReplayAway(BridgeError):
    """A replay server does not answer."""


class ReplayStub:
    """A replay server at ``host:port``; made after a fork, since gRPC has threads.

    Large samples of a server on the same host are put into memory of this process, unless
    ``shares_memory`` is false.
    """

    def __init__(self, url: str, call_timeout_s: float = 10.0, shares_memory: bool = True) -> None:
        self.url = url
        self._timeout_s = call_timeout_s
        self._channel = open_channel(url)
        self._samples = SharedSamples(shares_memory)
        self._calls = replay_pb2_grpc.ReplayStub(self._channel)
        # Calls with arrays, which are encoded beside their message.
        self._append = self._method("Append", STEPS.encode, replay_pb2.Stored.FromString)
        self._sample = self._method("Sample", replay_pb2.Request.SerializeToString, ITEMS.decode)
        self._update = self._method(
            "UpdatePriorities", PRIORITIES.encode, replay_pb2.Updated.FromString
        )

    def describe(self) -> tuple[Schema, dict[str, str]]:
        """Return the server's schema, and its tables' items."""
        description = self._call(self._calls.Describe, replay_pb2.Nothing())
        return schema_of(description.columns), {t.name: t.kind for t in description.tables}

    def open(self, writer: str, schema: Schema) -> float:
        """Begin to write; ConfigurationError, which names the columns, for other steps.

        Return for how many seconds at most nothing may be heard of the writer.
        """
        opening = replay_pb2.Opening(writer=writer, columns=column_messages(schema))
        return float(self._call(self._calls.Open, opening).lease_s)

    def hear(self, writer: str) -> None:
        """Let the server hear that a writer is connected; UnknownWriter."""
        self._call(self._append, steps_message(writer, [], np.zeros(0, np.uint8), []))

    def append(
        self, writer: str, runs: Sequence[replay_pb2.Run], flags: Flags, columns: Sequence[Array]
    ) -> list[int]:
        """Store steps; return for each run the number of the step that must come next.

        UnknownWriter, MissingSteps; ReplayAway where the tables are full, too.
        """
        message = steps_message(writer, runs, flags, columns)
        return list(self._call(self._append, message).next)

    def admit(
        self,
        writer: str,
        environments: Sequence[int],
        version: int,
        timeout_s: float,
        *,
        has_delivered: bool,
    ) -> None:
        """Begin a rollout in each environment; NotReady, with the reason, where it may not yet.

        UnknownWriter.
        """
        message = replay_pb2.Admission(
            writer=writer,
            environments=environments,
            version=version,
            timeout_s=timeout_s,
            has_delivered=has_delivered,
        )
        self._call(self._calls.Admit, message)

    def release(self, writer: str, environments: Sequence[int]) -> None:
        """End what environments have begun; UnknownWriter."""
        message = replay_pb2.Admission(writer=writer, released=environments)
        self._call(self._calls.Admit, message)

    def close_writer(self, writer: str, timeout_s: float) -> None:
        """Let no more be written by ``writer``: its unfinished episodes end at once."""
        self._call(self._calls.Close, replay_pb2.Writer(writer=writer), timeout_s)

    def sample(self, table: str, count: int, timeout_s: float, charge: int | None = None) -> Sample:
        """Draw items; NotReady where there are not enough within ``timeout_s``.

        The ratio of the table counts them as ``charge`` draws, if given.
        """
        request = replay_pb2.Request(table=table, count=count, timeout_s=timeout_s, charge=charge)
        return self._samples.sample(request, lambda asked: self._call(self._sample, asked))

    def watch(self, table: str, at_least: float, timeout_s: float) -> tuple[ReplayState, int]:
        """Wait until ``at_least`` items may be drawn, or ``timeout_s`` are over.

        Return how the table is, and the store's incarnation: another one after each start.
        """
        request = replay_pb2.Watching(table=table, at_least=at_least, timeout_s=timeout_s)
        message = self._call(self._calls.Watch, request)
        return state_of(message), message.incarnation

    def update_priorities(
        self, table: str, keys: IntArray, priorities: FloatArray, incarnation: int = 0
    ) -> int:
        """Give items other priorities; return how many of them are gone.

        If ``incarnation`` is given and is not the store's, all are gone.
        """
        message = priorities_message(table, keys, priorities, incarnation)
        return int(self._call(self._update, message).gone)

    def stats(self) -> dict[str, float]:
        """Return counts by name."""
        return dict(self._call(self._calls.GetStats, replay_pb2.Nothing()).values)

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()
        self._samples.close()

    def _method(self, name: str, encode: Any, decode: Any, service: str = SERVICE_NAME) -> Any:
        return self._channel.unary_unary(f"/{service}/{name}", encode, decode)

    def _call(self, method: Any, message: Any, timeout_s: float | None = None) -> Any:
        try:
            return method(message, timeout=timeout_s or self._timeout_s)
        except grpc.RpcError as error:
            raise self._meaning(error) from error

    def _meaning(self, error: grpc.RpcError) -> Exception:
        code, details = error.code(), error.details()
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED and TOO_LARGE not in details:
            return NotReady(details)
        if code in AWAY:
            return ReplayAway(f"the replay at {self.url}: {details}")
        if code is grpc.StatusCode.NOT_FOUND:
            return UnknownWriter(details)
        if code is grpc.StatusCode.OUT_OF_RANGE:
            return MissingSteps(details)
        if code is grpc.StatusCode.FAILED_PRECONDITION:
            return ConfigurationError(f"the replay at {self.url}: {details}")
        kind = TokenRefused if code is grpc.StatusCode.UNAUTHENTICATED else BridgeError
        return kind(f"the replay at {self.url}: {details}")
