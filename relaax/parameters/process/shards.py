"""A parameter server in several processes, each of which owns a slice of the parameters.

Each is an ordinary parameter server for its slice. The first one counts steps, and lets the others
save with it; these ask it what to begin with, and whether the training goes on.
"""

import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from relaax.algorithm_base import FloatVector, NullMetrics, ParameterServerBase, Phase, Shard, Slice
from relaax.checkpoints.checkpoint_place import store_of
from relaax.checkpoints.checkpoint_sets import FirstSaver, PartSaver, ShardAway
from relaax.configuration import ParameterServerConfiguration, ParameterServerOptions, S3Location
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.errors import Abandoned, BridgeError, CheckpointError, ConfigurationError
from relaax.net.channels import open_channel
from relaax.net.listening import naming_bind
from relaax.net.refusals import refuse, unary
from relaax.parameters import Bridge, BridgeControl, shards_pb2
from relaax.parameters.control import GrpcParameterServer
from relaax.parameters.stub import AWAY
from relaax.parameters.training_watch import first_answer
from relaax.processes.directory_lock import owned
from relaax.processes.periodic_tasks import Task, TasksThread
from relaax.processes.stop_signal import Stop
from relaax.telemetry.operators import Metric, OperatorPort, SaveRecord, counter
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

SERVICE_NAME = shards_pb2.DESCRIPTOR.services_by_name["ParameterShard"].full_name

#: How often a shard looks at another one.
LOOK_S = 0.5

#: How long all shards together may take to save.
SAVE_DEADLINE_S = 120.0

#: How long the first shard may take to answer one that begins.
_JOIN_S = 10.0

#: Shards that are started together find each other within so long.
_START_S = 2.0


def _method(channel: grpc.Channel, name: str, reply: Any) -> Any:
    return channel.unary_unary(
        f"/{SERVICE_NAME}/{name}", lambda message: message.SerializeToString(), reply.FromString
    )


class OtherShard:
    """Another shard, as the first one sees it: whether it is there, and what it has lost."""

    def __init__(self, shard: Shard, url: str) -> None:
        self.name = f"shard {shard} at {url}"
        self._bridge = Bridge(url, retry_for_s=0.0, patience_s=_START_S)
        self._channel = open_channel(url)
        self._save_part = _method(self._channel, "SavePart", shards_pb2.Done)
        self._complaint = RepeatedWarning(_log)
        #: Whether it has answered last, and ever.
        self.is_there = self._was_there = False
        self._looks = TasksThread([Task(LOOK_S, self._look)], f"look at shard {shard}")

    @property
    def steps_lost(self) -> int:
        """Of how many steps the updates were lost when it was killed, as far as is known."""
        return self._bridge.steps_lost

    def save_part(self, part: shards_pb2.Part) -> Any:
        """Begin to let it save."""
        return self._save_part.future(part, timeout=SAVE_DEADLINE_S)

    def close(self) -> None:
        """Close the channels, and look no more."""
        self._looks.stop()
        self._bridge.close()
        self._channel.close()
        self._looks.close()

    def _look(self) -> None:
        try:
            self._bridge.status()
        except BridgeError as error:
            self.is_there = False
            if self._was_there:
                self._complaint.say(f"{self.name} is away: its slice stays as it is ({error})")
            return
        self.is_there = self._was_there = True
        if self._complaint.forget():
            _log.warning("%s is back", self.name)


class OtherShards:
    """All shards but the first; ``addresses`` are those of all."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.count = len(addresses)
        self._shards = [
            OtherShard(Shard(number, len(addresses)), address)
            for number, address in enumerate(addresses, 1)
            if number > 1
        ]

    def missing(self) -> str | None:
        """Return in words which shard is away; None if all are there."""
        for shard in self._shards:
            if not shard.is_there:
                return f"{shard.name} is away, or has not begun yet"
        return None

    def save_parts(self, set_id: str, global_t: int, kept: Iterable[int]) -> None:
        """Let all save; ShardAway if one does not answer, CheckpointError if one cannot save."""
        part = shards_pb2.Part(set=set_id, global_t=global_t, kept=kept)
        saving = [(shard, shard.save_part(part)) for shard in self._shards]
        errors = [
            error for shard, call in saving if (error := _failure(shard.name, call)) is not None
        ]
        errors.sort(key=lambda error: isinstance(error, ShardAway))
        for error in errors:
            raise error

    def figures(self) -> Iterable[Metric]:
        """Return figures for Prometheus."""
        lost = sum(shard.steps_lost for shard in self._shards)
        means = "Steps whose updates of a slice were lost with a shard, since the start"
        return [counter("shard_steps_lost", means, lost)]

    def close(self) -> None:
        """Look at none any more."""
        for shard in self._shards:
            shard.close()


def _failure(name: str, call: Any) -> CheckpointError | None:
    try:
        call.result()
    except grpc.RpcError as error:
        kind = ShardAway if error.code() in AWAY else CheckpointError
        return kind(f"no set is saved: {name}: {error.details()}")
    return None


class FirstServicer:
    """Answers the other shards.

    ``initial`` [size] is what slices begin with where nothing is saved yet, and ``save`` lets all
    shards save.
    """

    def __init__(
        self, count: int, initial: FloatVector, saver: FirstSaver, save: Callable[[], object]
    ) -> None:
        self._count = count
        self._initial = initial
        self._saver = saver
        self._save = save

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return what a gRPC server answers with."""
        return _handlers(
            Join=(self.join, shards_pb2.Member), SaveSet=(self.save_set, shards_pb2.Done)
        )

    def join(self, member: shards_pb2.Member, context: grpc.ServicerContext) -> Any:
        """Say what a shard begins with."""
        if member.count != self._count or not 1 < member.index <= member.count:
            error = (
                f"shard {member.index}/{member.count} is not among the {self._count} shards here"
            )
            refuse(_log, context, ValueError(error))
        size = self._initial.size
        if member.size != size:
            error = (
                f"shard {member.index}/{member.count} is of {member.size:,} parameters, this one "
                f"of {size:,}: do all shards read one configuration?"
            )
            refuse(_log, context, ValueError(error))
        beginning = shards_pb2.Beginning(set=self._saver.set_id, global_t=self._saver.global_t)
        if self._saver.global_t is None:
            begin, end = Shard(member.index, member.count).place(size)
            beginning.vector = self._initial[begin:end].astype("<f4").tobytes()
        return beginning

    def save_set(self, request: shards_pb2.Done, context: grpc.ServicerContext) -> Any:
        """Let all shards save, since one is about to end."""
        try:
            self._save()
        except (CheckpointError, OSError) as error:
            refuse(_log, context, error, grpc.StatusCode.FAILED_PRECONDITION)
        return shards_pb2.Done()


class OtherServicer:
    """Lets another shard save its parts, when the first one says so; ``saves`` counts them."""

    def __init__(self, server: ParameterServerBase, saver: PartSaver) -> None:
        self._server = server
        self._saver = saver
        self._saving = threading.Lock()
        self._saved_updates = server.updates()
        self.saves = SaveRecord()

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return what a gRPC server answers with."""
        return _handlers(SavePart=(self.save_part, shards_pb2.Part))

    def save_part(self, part: shards_pb2.Part, context: grpc.ServicerContext) -> Any:
        """Save a part of a set."""
        try:
            if len(bytes.fromhex(part.set)) != len(bytes.fromhex(self._saver.set_id)):
                raise ValueError(f"{part.set!r} is not the name of a set")
        except ValueError as error:
            refuse(_log, context, error)
        try:
            self._save(part.set, part.global_t, set(part.kept))
            sys.audit("relaax.shards.part")
        except (CheckpointError, OSError) as error:
            refuse(_log, context, error, grpc.StatusCode.FAILED_PRECONDITION)
        return shards_pb2.Done()

    def save_what_is_new(self) -> None:
        """Save what was learnt since the last part, as a newer part of the same set."""
        if self._server.updates() == self._saved_updates:
            return
        saver = self._saver
        step = max(saver.global_t, self._server.global_t())
        self._save(saver.set_id, step, {saver.global_t, *saver.kept})

    def _save(self, set_id: str, global_t: int, kept: set[int]) -> None:
        with self._saving, self.saves.saving():
            saver = self._saver
            before = saver.set_id, saver.global_t, saver.kept
            saver.set_id, saver.global_t, saver.kept = set_id, global_t, kept
            updates = self._server.updates()
            try:
                self._server.save_checkpoint()
            except BaseException:
                saver.set_id, saver.global_t, saver.kept = before
                raise
            self._saved_updates = updates


def _handlers(**methods: tuple[Any, Any]) -> grpc.GenericRpcHandler:
    found = {
        name: unary(answer, request.FromString, lambda reply: reply.SerializeToString())
        for name, (answer, request) in methods.items()
    }
    return grpc.method_handlers_generic_handler(SERVICE_NAME, found)


class FirstShard:
    """The first shard, as another one sees it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bridge = Bridge(url, retry_for_s=0.0, patience_s=_START_S)
        self._channel = open_channel(url)
        self._join = _method(self._channel, "Join", shards_pb2.Beginning)
        self._save_set = _method(self._channel, "SaveSet", shards_pb2.Done)

    def join(self, shard: Shard, size: int) -> shards_pb2.Beginning:
        """Return what a shard of a vector [size] begins with; BridgeError while this is away."""
        self.bridge.status()  # which looks for it, and says why it is not reached
        member = shards_pb2.Member(index=shard.index, count=shard.count, size=size)
        try:
            beginning: shards_pb2.Beginning = self._join(member, timeout=_JOIN_S)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
                said = f"the first shard at {self.url} refuses: {error.details()}"
                raise ConfigurationError(said) from error
            raise BridgeError(f"the first shard at {self.url}: {error.details()}") from error
        return beginning

    def save_set(self) -> None:
        """Let all shards save, if this one is there."""
        with suppress(grpc.RpcError):  # what is new is saved beside the last set
            self._save_set(shards_pb2.Done(), timeout=SAVE_DEADLINE_S)

    def close(self) -> None:
        """Close the channels."""
        self.bridge.close()
        self._channel.close()


def serve_slice(
    configuration: ParameterServerConfiguration, shard: Shard, operators: OperatorPort, stop: Stop
) -> int:
    """Be another shard than the first, until the training is over or ``stop`` is set."""
    options, addresses = configuration.options, configuration.options.shards or ()
    algorithm = load_algorithm(configuration.algorithm.directory)
    require_own_bridge(algorithm)
    config = make_config(algorithm, configuration.algorithm)
    directory, s3 = _place(options, shard)
    with ExitStack() as resources:
        resources.enter_context(owned(directory, f"relaax-parameter-server --shard {shard}"))
        saver = PartSaver(store_of(directory, s3, options.aws), shard)
        server: ParameterServerBase = algorithm.ParameterServer(config, saver, NullMetrics())
        resources.callback(server.close)
        part = server.divide(shard)
        first = FirstShard(str(addresses[0]))
        resources.callback(first.close)
        beginning = first_answer(
            lambda: first.join(shard, part.size),
            "the first shard", stop, give_up_s=options.give_up, pause_s=LOOK_S,
        )  # fmt: skip
        if beginning is None:
            return 0
        begin(server, part, saver, beginning)
        servicer = OtherServicer(server, saver)
        with naming_bind():
            port = GrpcParameterServer(
                str(options.place), server.bridge(), [servicer.handlers()], part=part
            )
        resources.callback(port.stop, 1.0)
        print(f"shard {shard} at {options.place}; the first is at {first.url}", flush=True)
        watch = FirstWatch(first.bridge)
        operators.ready_if(
            lambda: None if watch.is_heard else f"the first shard is not at {first.url}"
        )
        operators.show(servicer.saves.counts)
        operators.begin()
        if not watch.until_over(stop, options.give_up):
            port.refuse_calls()
            first.save_set()
            servicer.save_what_is_new()
    return 0


def begin(
    server: ParameterServerBase, part: Slice, saver: PartSaver, beginning: shards_pb2.Beginning
) -> None:
    """Begin with what the first shard has said; CheckpointMismatch for a set that is not whole."""
    saver.set_id, saver.global_t = beginning.set, beginning.global_t
    if beginning.HasField("global_t"):
        server.restore_latest_checkpoint()
        _log.info("global step is %d", server.global_t())
    else:
        part.begin_with(np.frombuffer(beginning.vector, "<f4"))


class FirstWatch:
    """Asks the first shard whether the training goes on."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        #: Whether it has answered last.
        self.is_heard = True

    def until_over(self, stop: Stop, give_up_s: float = math.inf) -> bool:
        """Wait until the training is over, and its end is saved; False if ``stop`` is set before.

        The first shard has saved the end when it is gone. Abandoned if it is away for
        ``give_up_s``.
        """
        heard_at, phase, complaint = time.monotonic(), Phase.TRAINING, RepeatedWarning(_log)
        while not stop.wait(LOOK_S):
            try:
                phase, _ = self._bridge.status()
            except BridgeError as error:
                self.is_heard = False
                if phase is Phase.CLOSING:
                    return True
                complaint.say(f"the first shard is away: {error}")
                if time.monotonic() > heard_at + give_up_s:
                    raise Abandoned(
                        "the first shard", give_up_s, str(error), has_answered=True
                    ) from error
                continue
            heard_at, self.is_heard = time.monotonic(), True
            complaint.forget()
        return phase is Phase.CLOSING


def require_own_bridge(algorithm: Algorithm) -> None:
    """Raise ConfigurationError for an algorithm whose bridge knows no shards."""
    if algorithm.BridgeControl is not BridgeControl:
        raise ConfigurationError("--shard: this algorithm has a bridge of its own")


def _place(options: ParameterServerOptions, shard: Shard) -> tuple[Path | None, S3Location | None]:
    """Return where another shard than the first keeps its parts: below the first one's place."""
    name = shard.directory_name()
    directory, s3 = options.checkpoint_dir, options.checkpoint_aws_s3
    return (
        None if directory is None else directory / name,
        None if s3 is None else S3Location(s3.bucket, f"{s3.key}/{name}"),
    )
