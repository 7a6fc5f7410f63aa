"""The worker's end of the bridge: calls, and metrics in batches."""

import logging
import secrets
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import grpc

from relaax.algorithm_base import (
    DEFAULT,
    Evaluations,
    FloatVector,
    Gradient,
    NewValues,
    ParameterLink,
    Phase,
    Update,
    Values,
    Version,
)
from relaax.errors import BridgeError, NotThereYet, ParameterServerAway, TokenRefused
from relaax.net.channels import open_channel
from relaax.net.reachability import LONGEST_PAUSE_S, Reachability, RetryPause
from relaax.parameters import bridge_pb2, bridge_pb2_grpc
from relaax.parameters.stage import Stage
from relaax.parameters.vectors import (
    PHASES,
    SERVICE_NAME,
    UPDATES,
    VALUES,
    WithVector,
    known_message,
    new_values_message,
    update_message,
    values_of,
)
from relaax.telemetry.metrics import (
    EPISODE_AFTER,
    EPISODE_OF,
    EVALUATION_REWARD_AFTER,
    EVALUATION_REWARD_OF,
    NO_CURVES,
    Metrics,
)

_log = logging.getLogger(__name__)

#: Answers of a parameter server that is away or starting again.
AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)

#: An RLX server that is started alone says so after this time.
FIRST_WAIT_S = 2.0

#: How long a learner waits for the parameter server when it publishes.
PUBLISH_TIMEOUT_S = 5.0

_PHASES = {number: phase for phase, number in PHASES.items()}


class MetricsSender(Metrics):
    """Collects scalars and hands them over in batches, on a thread of its own.

    When the parameter server does not keep up or is away, the newest scalars are dropped and
    counted: training never waits for its metrics.
    """

    def __init__(
        self,
        send: Callable[[bridge_pb2.ScalarMetrics], None],
        interval_s: float = 0.5,
        capacity: int = 10_000,
    ) -> None:
        self._send = send
        self._interval_s = interval_s
        self._capacity = capacity
        self._waiting: deque[bridge_pb2.ScalarMetric] = deque()
        self._dropped = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics-sender", daemon=True)
        self._thread.start()

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Queue a scalar; drop it when the queue is full. TypeError for ``y`` that is no number."""
        metric = bridge_pb2.ScalarMetric(name=name, y=float(y), x=x)
        if len(self._waiting) < self._capacity:
            self._waiting.append(metric)
        else:
            self._dropped += 1

    def close(self, deadline_s: float = 2.0) -> None:
        """Send the scalars that are left, for at most ``deadline_s`` seconds."""
        self._closing.set()
        self._thread.join(deadline_s)

    def _run(self) -> None:
        while not self._closing.wait(self._interval_s):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        waiting = self._waiting
        batch = bridge_pb2.ScalarMetrics(metrics=[waiting.popleft() for _ in range(len(waiting))])
        if not batch.metrics:
            return
        try:
            self._send(batch)
        except Exception as error:  # a metric must not end the training
            _log.debug("%d metrics were lost: %s", len(batch.metrics), error)
        if self._dropped:
            _log.warning("%d metrics were dropped: too many at once", self._dropped)
            self._dropped = 0


class _Evaluating(Metrics):
    """Stores numbers of evaluated episodes as those of a ``stream``, if it is not "".

    ``is_stored``: their policy is a version of the parameter database, whose number is the
    learner's step.
    """

    def __init__(self, metrics: Metrics, stream: str, *, is_stored: bool) -> None:
        self._metrics = metrics
        self._stream = f"{stream}/" if stream else ""
        self._is_stored = is_stored

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """See Metrics."""
        if name == EVALUATION_REWARD_OF and self._is_stored:
            name = EVALUATION_REWARD_AFTER
        for kind in (EPISODE_OF, EPISODE_AFTER):
            if name.startswith(kind):
                known = EPISODE_AFTER if self._is_stored else kind
                name = f"{known}{self._stream}{name.removeprefix(kind)}"
                break
        self._metrics.scalar(name, y, x)


class _Copied(Metrics):
    """Stores scalars in both; those without ``x`` in ``copies`` at ``global_t()``."""

    def __init__(self, metrics: Metrics, copies: Metrics, global_t: Callable[[], int]) -> None:
        self._metrics = metrics
        self._copies = copies
        self._global_t = global_t

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """See Metrics."""
        self._metrics.scalar(name, y, x)
        if not name.startswith(NO_CURVES):
            self._copies.scalar(name, y, self._global_t() if x is None else x)


class Bridge(ParameterLink):
    """Calls a parameter server at ``host:port``; made after the fork, since gRPC has threads.

    While the parameter server is away, a call for values waits for it, up to ``retry_for_s``
    seconds, and raises ParameterServerAway then; a gradient is dropped instead, because it may have
    been applied already. A gradient with a version from before a restart of the parameter server is
    refused. Both are logged. When calls have failed for ``patience_s``, the log says why the
    parameter server is not reached. BridgeError for a call that fails at the parameter server.
    """

    def __init__(
        self,
        parameter_server_url: str,
        call_timeout_s: float = 10.0,
        retry_for_s: float = 600.0,
        patience_s: float = 0.0,
    ) -> None:
        self.url = parameter_server_url
        self._call_timeout_s = call_timeout_s
        self._retry_for_s = retry_for_s
        self._channel = open_channel(parameter_server_url)
        self._reachability = Reachability(parameter_server_url, patience_s)
        self._stub = bridge_pb2_grpc.ParameterServerStub(self._channel)
        self._push = self._channel.unary_unary(
            f"/{SERVICE_NAME}/Push", UPDATES.encode, VALUES.decode
        )
        self._pull = self._channel.unary_unary(
            f"/{SERVICE_NAME}/Pull", bridge_pb2.Known.SerializeToString, VALUES.decode
        )
        self._metrics: MetricsSender | None = None
        self._closed = threading.Event()
        #: The name of this sender at the parameter server, and its steps that were counted there.
        self._sender = secrets.randbits(63) + 1
        self._counted = 0
        self._counting = threading.Lock()
        #: By method.
        self._pauses: defaultdict[Callable[..., Any], RetryPause] = defaultdict(
            partial(RetryPause, _log)
        )
        #: The latest answer.
        self._status: bridge_pb2.Status | None = None
        #: Steps whose learning the parameter server has lost when it started again.
        self.steps_lost = 0
        #: The version of the parameter database that is pulled; "" for the newest values.
        self._identifier = ""
        #: Of an experiment; see ``report_to``.
        self._stream = ""
        #: Where metrics are stored, too.
        self._copies: Metrics | None = None

    def wait_at_most(self, seconds: float) -> None:
        """Wait no longer than ``seconds`` for a parameter server that is away."""
        self._retry_for_s = seconds

    def follow(self, identifier: str) -> None:
        """Pull this version from now on; see ParameterLink."""
        self._identifier = identifier

    def report_to(self, stream: str) -> None:
        """Report evaluated episodes as those of a stream; see ParameterLink."""
        self._stream = stream

    def copy_metrics_to(self, metrics: Metrics) -> None:
        """Store metrics there, too, from now on, but for those that are no curves."""
        self._copies = metrics

    def add(self, steps: int) -> int:
        """Add environment steps to the global step and return it.

        They are counted once, also where an answer is lost and the call is repeated: by this, or by
        the caller after a ParameterServerAway.
        """
        with self._counting:
            total = self._counted + steps
            request = bridge_pb2.Steps(count=steps, sender=self._sender, total=total)
            reply: bridge_pb2.GlobalStep = self._with_retries(self._stub.IncrementGlobalT, request)
            self._counted = total
            return reply.global_t

    def pull(self, known: Version | None = None, policy: str = DEFAULT) -> Values:
        """Return the values, without their vector when ``known`` is current."""
        return self._whole(self.await_values(known, policy))

    def push(self, update: Update, policy: str = DEFAULT) -> Values:
        """Apply a gradient, count its steps and return newer values, or replace the values.

        A gradient is dropped with a warning when the parameter server is away. ParameterServerAway
        for values, if it does not take them within some seconds: later ones are newer, so that a
        learner need not wait. A call that is refused at once takes some seconds all the same: a
        learner that pushes after each step would make thousands.
        """
        if isinstance(update, NewValues):
            return self._replace(update, policy)
        known = update.computed_with if isinstance(update, Gradient) else None
        reply = self._try_to_apply(update_message(update, policy=policy), known)
        return self.pull(known, policy) if reply is None else self._whole(reply)

    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """Send one gradient, without values in the answer; see ``push``."""
        message = update_message(Gradient(gradients, computed_with), want_values=False)
        self._try_to_apply(message, computed_with)

    def await_values(
        self, known: Version | None = None, policy: str = DEFAULT
    ) -> WithVector[bridge_pb2.Values]:
        """Return the answer with the values, or with the slice of a shard, once it is there."""
        reply: WithVector[bridge_pb2.Values] = self._with_retries(
            self._pull, known_message(known, policy, self._identifier if policy == DEFAULT else "")
        )
        return reply

    def begin(
        self, message: WithVector[bridge_pb2.Update] | bridge_pb2.Known, on_this_thread: bool
    ) -> Callable[[], WithVector[bridge_pb2.Values] | None]:
        """Begin a call with a gradient, or for values; return a function that waits for its answer.

        It returns None while the server is away. BridgeError if the server refuses the call,
        ParameterServerAway if this bridge is closed. A call ``on_this_thread`` is made by that
        function: of several calls at once, one takes less so.
        """
        method = self._push if isinstance(message, WithVector) else self._pull
        call = partial(method, message, timeout=self._call_timeout_s)
        if not on_this_thread:
            try:
                call = method.future(message, timeout=self._call_timeout_s).result
            except ValueError as error:
                raise self._closed_error() from error

        def ended() -> WithVector[bridge_pb2.Values] | None:
            try:
                reply: WithVector[bridge_pb2.Values] = call()
            except (ValueError, grpc.FutureCancelledError) as error:
                raise self._closed_error() from error
            except grpc.RpcError as error:
                self.require_away(error)
                return None
            return reply

        return ended

    def require_away(self, error: grpc.RpcError) -> None:
        """Raise BridgeError for a call that was refused; else look for the server."""
        if error.code() not in AWAY:
            raise refusal_of(error, self.url) from error
        if not self._closed.is_set():
            self._reachability.look()

    def _closed_error(self) -> ParameterServerAway:
        """Return the error of a call whose channel another thread has closed."""
        return ParameterServerAway(f"the way to {self.url} is closed")

    def _whole(self, reply: WithVector[bridge_pb2.Values]) -> Values:
        """Return the values of a parameter server that is not a shard."""
        if reply.fields.size:
            raise BridgeError(
                f"parameter server {self.url} is one of several shards: name all of them, the "
                "first one first, in --parameter-server"
            )
        return values_of(reply)

    def metrics(self) -> Metrics:
        """Return where scalars go: to the parameter server, in batches."""
        if self._metrics is None:
            self._metrics = MetricsSender(
                lambda batch: self._stub.StoreScalarMetric(batch, timeout=self._call_timeout_s)
            )
        metrics: Metrics = self._metrics
        if self._copies is not None:
            metrics = _Copied(metrics, self._copies, self.global_t)
        if not (self._identifier or self._stream):
            return metrics
        return _Evaluating(metrics, self._stream, is_stored=bool(self._identifier))

    def evaluations(self, after: int = 0) -> Evaluations:
        """Return the scores of evaluations behind the first ``after``."""
        query = bridge_pb2.EvaluationQuery(after=after)
        reply: bridge_pb2.Evaluations = self._with_retries(self._stub.GetEvaluations, query)
        return Evaluations(reply.count, list(zip(reply.iterations, reply.scores, strict=True)))

    def phase(self) -> Phase:
        """Return whether the training goes on; ParameterServerAway while a shard of it is away."""
        phase, away = self.status()
        if away and phase is Phase.TRAINING:
            raise ParameterServerAway(f"parameter server {self.url}: {away}")
        return phase

    def status(self) -> tuple[Phase, str]:
        """Return whether the training goes on, and in words which shard of it is away, if any."""
        reply: bridge_pb2.Status = self._with_retries(self._stub.GetStatus, bridge_pb2.Nothing())
        self._note_status(reply)
        return _PHASES.get(reply.phase, Phase.TRAINING), reply.away

    def global_t(self) -> int:
        """Return the global step that the last status has told; 0 before."""
        return 0 if self._status is None else self._status.global_t

    def stage(self) -> Stage | None:
        """Return the stage of the policy's curriculum by the last status; None without one."""
        if self._status is None:
            self.status()
        status = self._status
        if status is None or not status.HasField("stage"):
            return None
        return Stage(status.stage.number, status.stage.name)

    def places(self, environments: Sequence[int]) -> Sequence[int]:
        """Return the places of environments among all of the training."""
        request = bridge_pb2.Environments(holder=self._sender, numbers=environments)
        reply: bridge_pb2.Places = self._with_retries(self._stub.GetPlaces, request)
        return list(reply.places)

    def close(self) -> None:
        """Send the metrics that are left and close the channel; calls that wait end with it."""
        self._closed.set()
        if self._metrics is not None:
            self._metrics.close()
        self._channel.close()

    def _note_status(self, status: bridge_pb2.Status) -> None:
        """Say how many steps a parameter server has lost that has started again."""
        before, self._status = self._status, status
        is_known = status.HasField("began_with")
        if before is None or before.incarnation == status.incarnation or not is_known:
            return
        lost = before.global_t - status.began_with
        if lost > 0:
            self.steps_lost += lost
            _log.warning(
                "parameter server %s started again and went back from global step %d to %d: at "
                "least %d steps are lost (--checkpoint-interval)",
                self.url,
                before.global_t,
                status.began_with,
                lost,
            )

    def _replace(self, new: NewValues, policy: str) -> Values:
        message = new_values_message(self.with_lineage(new), policy)
        try:
            reply = self._push(message, timeout=PUBLISH_TIMEOUT_S, wait_for_ready=True)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:  # it may say so at once
                self._closed.wait(LONGEST_PAUSE_S)
            self.require_away(error)
            raise ParameterServerAway(
                f"parameter server {self.url} did not take the published values ({error.details()})"
            ) from error
        return values_of(reply)

    def _try_to_apply(
        self, message: WithVector[bridge_pb2.Update], computed_with: Version | None
    ) -> WithVector[bridge_pb2.Values] | None:
        sys.audit("relaax.bridge.call")
        try:
            reply: WithVector[bridge_pb2.Values] = self._push(message, timeout=self._call_timeout_s)
        except grpc.RpcError as error:
            self.require_away(error)
            lost = f"a gradient, which counts {message.fields.steps} steps,"
            _log.warning(
                "%s may be lost: parameter server %s has not confirmed it (%s)",
                "an update of the filters' statistics" if message.vector is None else lost,
                self.url,
                error.details(),
            )
            return None
        if computed_with is not None and reply.fields.incarnation != computed_with.incarnation:
            _log.warning(
                "a gradient was refused: it was computed with values from before parameter server "
                "%s started again; its %d steps are not counted",
                self.url,
                message.fields.steps,
            )
        return reply

    def _with_retries(self, call: Callable[..., Any], message: Any) -> Any:
        deadline = time.monotonic() + self._retry_for_s
        timeout_s, pause = min(self._call_timeout_s, FIRST_WAIT_S), self._pauses[call]
        while True:
            try:
                reply = call(message, timeout=timeout_s, wait_for_ready=True)
                if pause.reset():
                    _log.warning("parameter server %s answers now", self.url)
                return reply
            except (grpc.RpcError, ValueError) as error:
                if self._closed.is_set():  # by another thread: then a channel says ValueError
                    raise self._closed_error() from error
                if isinstance(error, ValueError):
                    raise
                self.require_away(error)
                if self._closed.is_set():
                    raise ParameterServerAway("the connection was closed meanwhile") from error
                if time.monotonic() > deadline:
                    raise ParameterServerAway(
                        f"parameter server {self.url} has not answered for {self._retry_for_s:g} s"
                    ) from error
                timeout_s = self._call_timeout_s
                # It may say at once that it is not available.
                pause.wait(self._why_it_waits(error), self._closed)

    def _why_it_waits(self, error: grpc.RpcError) -> str:
        """Return the reason; a call that has waited until its deadline does not know it."""
        cause = error.details()
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            cause = self._reachability.cause or "it does not answer"
        return f"waiting for parameter server {self.url} ({cause})"


def refusal_of(error: grpc.RpcError, url: str) -> BridgeError:
    """Return the error of a call that the parameter server at ``url`` has refused."""
    kinds = {grpc.StatusCode.UNAUTHENTICATED: TokenRefused, grpc.StatusCode.NOT_FOUND: NotThereYet}
    kind = kinds.get(error.code(), BridgeError)
    return kind(f"parameter server {url}: {error.details()}")
