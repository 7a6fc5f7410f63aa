"""The parameter server's end of the bridge."""

import logging
import secrets
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NoReturn, Protocol, TypeVar

import grpc

from relaax.algorithm_base import DEFAULT, Gradient, ParameterLink, Phase, Slice, Values, Version
from relaax.errors import CheckpointError, ConfigurationError, NoSuchVersion, ParameterServerAway
from relaax.net.refusals import address_of, handlers_of
from relaax.parameters import bridge_pb2
from relaax.parameters.callers import Gate, Listeners, Places, Traffic
from relaax.parameters.sender_totals import (
    CountedSteps,
    SenderTotals,
    require_possible,
    require_reachable,
)
from relaax.parameters.stage import Stage
from relaax.parameters.vectors import (
    PHASES,
    SERVICE,
    UPDATES,
    VALUES,
    WithVector,
    new_values_of,
    update_of,
    values_message,
)
from relaax.telemetry.kept_counts import KeptCounts
from relaax.telemetry.throttled_log import FailureLog, in_words

_log = logging.getLogger(__name__)

#: A parameter server that is about to stop waits so long for its calls. All are far shorter but the
#: calls of a learner that waits for other learners, which would be refused by then.
CALL_S = 1.0

#: Environments of one RLX server.
_MOST_PLACES = 65_536


Reply = TypeVar("Reply")


class Versions(Protocol):
    """The versions of a parameter database."""

    def pull(self, identifier: str, known: Version | None) -> Values:
        """Return the values of a version, without their vector where it is ``known``.

        NoSuchVersion if there is none; ConfigurationError for a query that is wrong.
        """


class ParameterServerServicer:
    """Turns gRPC messages into calls of an algorithm's service, and back.

    A version of another incarnation is not known here, and a gradient computed with it is refused:
    the caller sees that the returned values are of another incarnation.

    ``part`` is the slice of a shard: a gradient is applied at the global step that its sender
    gives, if it does. ``missing`` returns in words why gradients are not applied, or "".
    ``senders`` remember whose steps were counted. ``versions`` are those of the parameter database,
    if there is one. ``stage`` returns that of the policy's curriculum, if it has one.

    An exception of the service is logged with its traceback, once for each line of code that raises
    it and each way to it, and with the caller's address. The caller gets its type and message.
    """

    def __init__(
        self,
        service: ParameterLink,
        missing: Callable[[], str] = str,
        senders: SenderTotals | None = None,
        part: Slice | None = None,
        versions: Versions | None = None,
        stage: Callable[[], Stage | None] = lambda: None,
    ) -> None:
        self.phase = Phase.TRAINING
        self._service = service
        self._missing = missing
        self._part = part
        self._versions = versions
        self._stage = stage
        #: Steps without a gradient, since the start; a reader may outlive this process.
        self._kept = KeptCounts(["counted"]).row()
        self._steps = CountedSteps(service.add, partial(self._kept.add, "counted"), senders)
        self._gate = Gate()
        self._places = Places()
        self._listeners = Listeners()
        self._incarnation = secrets.randbits(63) + 1
        self._began_with = _step_of(service)
        self._failures = FailureLog(_log)
        self._traffic = Traffic(service.metrics)

    def increment_global_t(
        self, request: bridge_pb2.Steps, context: grpc.ServicerContext
    ) -> bridge_pb2.GlobalStep:
        """Count environment steps."""
        return self._answer(context, lambda: bridge_pb2.GlobalStep(global_t=self._count(request)))

    def push(
        self, request: WithVector[bridge_pb2.Update], context: grpc.ServicerContext
    ) -> WithVector[bridge_pb2.Values]:
        """Apply a gradient, count its steps, and return newer values if they are wanted.

        Or serve other values from now on.
        """
        return self._answer(context, lambda: self._push(request))

    def pull(
        self, request: bridge_pb2.Known, context: grpc.ServicerContext
    ) -> WithVector[bridge_pb2.Values]:
        """Return the values, or "not modified"."""
        return self._answer(context, lambda: self._pull(request))

    def get_evaluations(
        self, request: bridge_pb2.EvaluationQuery, context: grpc.ServicerContext
    ) -> bridge_pb2.Evaluations:
        """Return the scores of evaluations that the caller does not have."""
        return self._answer(context, lambda: self._evaluations(request))

    def store_scalar_metric(
        self, request: bridge_pb2.ScalarMetrics, context: grpc.ServicerContext
    ) -> bridge_pb2.Nothing:
        """Hand scalars to the metrics of the parameter server."""
        return self._answer(context, lambda: self._store(request))

    def get_status(
        self, request: bridge_pb2.Nothing, context: grpc.ServicerContext
    ) -> bridge_pb2.Status:
        """Return whether the training goes on."""
        return self._answer(context, lambda: self._status(context.peer()))

    def get_places(
        self, request: bridge_pb2.Environments, context: grpc.ServicerContext
    ) -> bridge_pb2.Places:
        """Return the place of each environment of the caller."""
        return self._answer(context, lambda: self._placed(request))

    def refuse_calls(self) -> None:
        """Answer no more calls: their updates would not be saved. Callers call again."""
        late = self._gate.close(CALL_S)
        if late:
            _log.warning("%d calls take too long to wait for: their updates may be lost", late)

    def all_know_the_phase(self) -> bool:
        """Return whether all callers of the last seconds were answered with the present phase."""
        return self._listeners.all_know(self.phase)

    def _status(self, caller: str) -> bridge_pb2.Status:
        phase, stage = self.phase, self._stage()
        status = bridge_pb2.Status(
            phase=PHASES[phase],
            global_t=self._service.add(0),
            incarnation=self._incarnation,
            began_with=self._began_with,
            away=self._missing(),
            stage=None if stage is None else bridge_pb2.Stage(**stage._asdict()),
        )
        self._listeners.tell(caller, phase)
        return status

    def _placed(self, request: bridge_pb2.Environments) -> bridge_pb2.Places:
        if len(request.numbers) > _MOST_PLACES:
            raise ValueError(f"{len(request.numbers)} places are asked for, {_MOST_PLACES} at most")
        return bridge_pb2.Places(places=self._places.of(request.holder, request.numbers))

    def _answer(self, context: grpc.ServicerContext, call: Callable[[], Reply]) -> Reply:
        """Return the result of ``call``; an exception of it is logged, and is the answer."""
        try:
            with self._gate.passing():
                return call()
        # Of a replica, at the end, or of a database that is away: try again.
        except (ParameterServerAway, CheckpointError) as error:
            _abort(context, grpc.StatusCode.UNAVAILABLE, str(error))
        except NoSuchVersion as error:
            _abort(context, grpc.StatusCode.NOT_FOUND, str(error))
        except ConfigurationError as error:  # the caller says it, and nothing is wrong here
            _log.warning("a call from %s is refused: %s", address_of(context), error)
            _abort(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except Exception as error:  # whatever an algorithm's own code raises
            self._failures.add(f"a call from {address_of(context)}", error)
            _refuse(context, error)

    def _count(self, request: bridge_pb2.Steps) -> int:
        global_t = self._steps.count(request.count, request.sender, request.total)
        sys.audit("relaax.bridge.counted")
        return global_t

    def _evaluations(self, request: bridge_pb2.EvaluationQuery) -> bridge_pb2.Evaluations:
        found = self._service.evaluations(request.after)
        iterations, scores = zip(*found.scores, strict=True) if found.scores else ((), ())
        return bridge_pb2.Evaluations(count=found.count, iterations=iterations, scores=scores)

    def _store(self, request: bridge_pb2.ScalarMetrics) -> bridge_pb2.Nothing:
        metrics = self._service.metrics()
        for metric in request.metrics:
            metrics.scalar(metric.name, metric.y, metric.x if metric.HasField("x") else None)
        return bridge_pb2.Nothing()

    def _push(self, request: WithVector[bridge_pb2.Update]) -> WithVector[bridge_pb2.Values]:
        if request.fields.HasField("new_values"):
            return self._replace(request)
        self._traffic.received("gradients", request.vector)
        fields, computed_with = request.fields, None
        policy = fields.policy or DEFAULT
        require_possible(fields.steps)
        if fields.HasField("computed_with"):
            computed_with = self._version_of(fields.computed_with)
            if computed_with is None:
                return self._values_message(self._service.pull(None, policy))
        update = update_of(request, computed_with)
        sys.audit("relaax.bridge.apply")
        if self._part is not None and fields.HasField("at") and isinstance(update, Gradient):
            require_reachable(fields.at, self._service.add(0))
            self._part.apply(update, fields.at)
            values = self._service.pull()
        else:
            values = self._service.push(update, policy)
        sys.audit("relaax.bridge.applied")
        if not fields.want_values:
            values = replace(values, vector=None)
        return self._values_message(values)

    def _replace(self, request: WithVector[bridge_pb2.Update]) -> WithVector[bridge_pb2.Values]:
        self._traffic.received("publishes", request.vector)
        new, policy = new_values_of(request), request.fields.policy or DEFAULT
        return self._values_message(self._service.push(new, policy))

    def _pull(self, request: bridge_pb2.Known) -> WithVector[bridge_pb2.Values]:
        self._traffic.received("reads")
        known, policy = self._version_of(request), request.policy or DEFAULT
        if not request.identifier:
            return self._values_message(self._service.pull(known, policy))
        if self._versions is None or policy != DEFAULT:
            raise ConfigurationError(
                f"no version {request.identifier} can be pulled (--policy-identifier): this "
                "parameter server has no parameter database of the policy; give it --database-dir"
            )
        return self._values_message(self._versions.pull(request.identifier, known))

    def _version_of(self, known: bridge_pb2.Known) -> Version | None:
        if known.incarnation != self._incarnation:
            return None
        return Version(known.version, known.incarnation)

    def _values_message(self, values: Values) -> WithVector[bridge_pb2.Values]:
        self._traffic.sent(values.vector)
        return values_message(values, self._incarnation, self._part)


def method_handlers(servicer: ParameterServerServicer) -> grpc.GenericRpcHandler:
    """Return the handlers of a gRPC server's calls."""
    return handlers_of(SERVICE, servicer, UPDATES, VALUES)


def _step_of(service: ParameterLink) -> int | None:
    try:
        return service.add(0)
    except Exception:  # of an algorithm's own code, which says so to those that ask
        return None


def _refuse(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    is_about_the_call = isinstance(error, ValueError)
    code = grpc.StatusCode.INVALID_ARGUMENT if is_about_the_call else grpc.StatusCode.INTERNAL
    sent = f"sent from {address_of(context)}; the log there has the traceback"
    _abort(context, code, f"{in_words(error)} ({sent})")


def _abort(context: grpc.ServicerContext, code: grpc.StatusCode, said: str) -> NoReturn:
    context.abort(code, said)
    raise AssertionError("abort raises")
