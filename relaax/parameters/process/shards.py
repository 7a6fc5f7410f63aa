"""A parameter server in several processes, each of which owns a slice of the parameters.

Each is an ordinary parameter server for its slice. The first one counts steps. It has a client for
each other shard (``OtherShards``), to let it save, and serves ``Join`` and ``SaveSet``. Each other
shard has a client for the first one (``FirstShard``), to begin with its values and to end with the
training, and serves ``SavePart``.
"""

import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack

import grpc
import numpy as np

from relaax.algorithm_base import FloatVector, NullMetrics, ParameterServerBase, Phase, Shard, Slice
from relaax.checkpoints.checkpoint_place import store_of
from relaax.checkpoints.checkpoint_sets import FirstSaver, PartSaver, SetName, ShardAway
from relaax.configuration import ParameterServerConfiguration
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.errors import Abandoned, BridgeError, CheckpointError, ConfigurationError
from relaax.net.channels import open_channel
from relaax.net.listening import naming_bind
from relaax.net.refusals import handlers_of, refuse
from relaax.parameters import Bridge, BridgeControl, shards_pb2, shards_pb2_grpc
from relaax.parameters.control import GrpcParameterServer
from relaax.parameters.stub import AWAY
from relaax.parameters.training_watch import first_answer
from relaax.processes.directory_lock import owned
from relaax.processes.periodic_tasks import Task, TasksThread
from relaax.processes.stop_signal import Stop
from relaax.telemetry.operators import Metric, OperatorPort, SaveRecord, counter
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: How often a shard looks at another one.
LOOK_S = 0.5

#: How long all shards together may take to save.
SAVE_DEADLINE_S = 120.0

#: How long the first shard may take to answer a shard that begins.
_JOIN_S = 10.0

#: Shards that are started together find each other within so long.
_START_S = 2.0

_SERVICES = shards_pb2.DESCRIPTOR.services_by_name


class OtherShard:
    """Another shard, as the first one sees it."""

    def __init__(self, shard: Shard, url: str) -> None:
        self.number = shard.index
        self.name = f"shard {shard} at {url}"
        self.bridge = Bridge(url, retry_for_s=0.0, patience_s=_START_S)
        self._channel = open_channel(url)
        self._stub = shards_pb2_grpc.OtherShardStub(self._channel)
        self._complaint = RepeatedWarning(_log)
        #: Whether it has answered last, and ever.
        self.is_there = self._was_there = False
        self._looks = TasksThread([Task(LOOK_S, self._look)], f"look at shard {shard}")

    def save(self, part: shards_pb2.Part) -> Callable[[], CheckpointError | None]:
        """Begin to let it save; return a function that waits for the end, and returns an error."""
        call = self._stub.SavePart.future(part, timeout=SAVE_DEADLINE_S)

        def ended() -> CheckpointError | None:
            try:
                call.result()
            except grpc.RpcError as error:
                fault = f"no set is saved: {self.name}: {error.details()}"
                if error.code() in AWAY:
                    return ShardAway(fault, {self.number})
                return CheckpointError(fault)
            return None

        return ended

    def close(self) -> None:
        """Close the channels, and look no more."""
        self._looks.stop()
        self.bridge.close()
        self._channel.close()
        self._looks.close()

    def _look(self) -> None:
        try:
            self.bridge.status()
        except BridgeError as error:
            self.is_there = False
            if self._was_there:
                self._complaint.say(f"{self.name} is away: its slice stays as it is ({error})")
            return
        self.is_there = self._was_there = True
        if self._complaint.forget():
            _log.warning("%s is back", self.name)


class OtherShards:
    """All shards but the first; ``addresses`` are of all shards."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.count = len(addresses)
        self._shards = [
            OtherShard(Shard(number, self.count), address)
            for number, address in enumerate(addresses, 1)
            if number > 1
        ]

    def missing(self) -> str | None:
        """Return in words which shard is away; None if all are there."""
        away = [shard.name for shard in self._shards if not shard.is_there]
        return f"{away[0]} is away, or has not begun yet" if away else None

    def save_parts(self, name: SetName, kept: Collection[int]) -> None:
        """Let all save; ShardAway if some do not answer, CheckpointError if one cannot save."""
        part = shards_pb2.Part(set=_message_of(name), kept=kept)
        saving = [shard.save(part) for shard in self._shards]
        errors = [error for ended in saving if (error := ended()) is not None]
        away = [error for error in errors if isinstance(error, ShardAway)]
        if len(away) < len(errors):
            raise next(error for error in errors if error not in away)
        if away:
            raise ShardAway(str(away[0]), {number for error in away for number in error.shards})

    def figures(self) -> Iterable[Metric]:
        """Return figures for Prometheus."""
        lost = sum(shard.bridge.steps_lost for shard in self._shards)
        means = "Steps whose updates of a slice were lost with a shard, since the start"
        return [counter("shard_steps_lost", means, lost)]

    def close(self) -> None:
        """Close the channels to all."""
        for shard in self._shards:
            shard.close()


class FirstServicer:
    """Answers the other shards.

    ``initial`` [size] are the values that slices begin with where nothing is saved yet, and
    ``save`` lets all shards save.
    """

    def __init__(
        self, count: int, initial: FloatVector, saver: FirstSaver, save: Callable[[], object]
    ) -> None:
        self._count = count
        self._initial = initial
        self._saver = saver
        self._save = save

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the handlers of a gRPC server."""
        return handlers_of(_SERVICES["FirstShard"], self)

    def join(
        self, member: shards_pb2.Member, context: grpc.ServicerContext
    ) -> shards_pb2.Beginning:
        """Return the values that a shard begins with."""
        self._require_known(member, context)
        self._saver.left.discard(member.index)
        if self._saver.last is not None:
            return shards_pb2.Beginning(set=_message_of(self._saver.last))
        begin, end = Shard(member.index, member.count).place(self._initial.size)
        return shards_pb2.Beginning(vector=self._initial[begin:end].astype("<f4").tobytes())

    def save_set(
        self, member: shards_pb2.Member, context: grpc.ServicerContext
    ) -> shards_pb2.Saved:
        """Let all shards save, since one is about to end."""
        self._require_known(member, context)
        fault = ""
        try:
            self._save()
            self._saver.left.add(member.index)
        except (CheckpointError, OSError) as error:
            fault = str(error)
            _log.warning("shard %d/%d ends: %s", member.index, member.count, fault)
        last = self._saver.last
        return shards_pb2.Saved(set=None if last is None else _message_of(last), error=fault)

    def _require_known(self, member: shards_pb2.Member, context: grpc.ServicerContext) -> None:
        error, shard = None, f"shard {member.index}/{member.count}"
        if member.count != self._count or not 1 < member.index <= member.count:
            error = f"{shard} is not among the {self._count} shards here"
        elif member.size != self._initial.size:
            error = (
                f"{shard} is of {member.size:,} parameters, this one of {self._initial.size:,}: "
                "do all shards read one configuration?"
            )
        if error is not None:
            refuse(_log, context, ValueError(error))


class FirstShard:
    """The first shard, as ``shard`` of a vector [size] sees it."""

    def __init__(self, url: str, shard: Shard, size: int) -> None:
        self.url = url
        self._member = shards_pb2.Member(index=shard.index, count=shard.count, size=size)
        self._bridge = Bridge(url, retry_for_s=0.0, patience_s=_START_S)
        self._channel = open_channel(url)
        self._stub = shards_pb2_grpc.FirstShardStub(self._channel)
        #: Whether it has answered last.
        self.is_heard = True

    def join(self) -> shards_pb2.Beginning:
        """Return the values that the shard begins with.

        BridgeError while the first shard is away, ConfigurationError if it refuses.
        """
        self._bridge.status()  # which looks for it, and says why it is not reached
        try:
            beginning: shards_pb2.Beginning = self._stub.Join(self._member, timeout=_JOIN_S)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.INVALID_ARGUMENT:
                said = f"the first shard at {self.url} refuses: {error.details()}"
                raise ConfigurationError(said) from error
            raise BridgeError(f"the first shard at {self.url}: {error.details()}") from error
        return beginning

    def until_over(self, part: Slice, stop: Stop, give_up_s: float = math.inf) -> bool:
        """Let ``part`` follow the first shard's steps until the training is over.

        Its end is saved then: the first shard is gone. False if ``stop`` is set before. Abandoned
        if the first shard is away for ``give_up_s``.
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
            part.follow(self._bridge.global_t())
        return phase is Phase.CLOSING

    def save_set(self) -> shards_pb2.Saved:
        """Let all shards save; return what is saved. BridgeError while the first shard is away."""
        try:
            saved: shards_pb2.Saved = self._stub.SaveSet(self._member, timeout=SAVE_DEADLINE_S)
        except grpc.RpcError as error:
            raise BridgeError(f"the first shard at {self.url}: {error.details()}") from error
        return saved

    def close(self) -> None:
        """Close the channels."""
        self._bridge.close()
        self._channel.close()


class OtherServicer:
    """Lets another shard save its parts, when the first one says so; ``saves`` counts them."""

    def __init__(self, server: ParameterServerBase, saver: PartSaver) -> None:
        self._server = server
        self._saver = saver
        self._saving = threading.Lock()
        #: Updates in the slice that it began with, and in its parts by the step of their set. The
        #: newest part is the last one, and may be of no whole set.
        self._began_with = server.updates()
        self._updates_in = {saver.name.global_t: self._began_with}
        self.saves = SaveRecord()

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the handlers of a gRPC server."""
        return handlers_of(_SERVICES["OtherShard"], self)

    def save_part(self, part: shards_pb2.Part, context: grpc.ServicerContext) -> shards_pb2.Done:
        """Save a part of a set."""
        name = _name_of(part.set)
        try:
            name.require_valid()
            with self._saving, self.saves.saving():
                self._saver.name, self._saver.kept = name, set(part.kept)
                updates = self._server.updates()
                self._server.save_checkpoint()
                self._updates_in = {
                    step: before
                    for step, before in self._updates_in.items()
                    if step in self._saver.kept and step != name.global_t
                }
                self._updates_in[name.global_t] = updates
        except ValueError as error:
            refuse(_log, context, error)
        except (CheckpointError, OSError) as error:
            refuse(_log, context, error, grpc.StatusCode.FAILED_PRECONDITION)
        sys.audit("relaax.shards.part")
        return shards_pb2.Done()

    def save_last(self, first: FirstShard) -> None:
        """Let all shards save before this one ends; warn if updates of it remain in no set."""
        try:
            saved = first.save_set()
        except BridgeError as error:
            reason, updates = str(error), list(self._updates_in.values())[-1]
        else:
            if not saved.error and not self._saver.has_place:
                return  # nor has the first shard
            reason = saved.error or f"the first shard at {first.url} has saved no set since"
            updates = self._updates_in.get(saved.set.global_t, self._began_with)
        if self._server.updates() != updates:
            _log.warning("the updates since the last set are not saved: %s", reason)


def serve_slice(
    configuration: ParameterServerConfiguration, shard: Shard, operators: OperatorPort, stop: Stop
) -> int:
    """Be another shard than the first, until the training is over or ``stop`` is set."""
    options, addresses = configuration.options, configuration.options.shards or ()
    algorithm = load_algorithm(configuration.algorithm.directory)
    require_own_bridge(algorithm)
    config = make_config(algorithm, configuration.algorithm)
    place, below = (options.checkpoint_dir, options.checkpoint_aws_s3), shard.directory_name()
    own = None if options.checkpoint_dir is None else options.checkpoint_dir / below
    with ExitStack() as resources:
        resources.enter_context(owned(own, f"relaax-parameter-server --shard {shard}"))
        saver = PartSaver(store_of(*place, options.aws, below), shard)
        server: ParameterServerBase = algorithm.ParameterServer(config, saver, NullMetrics())
        resources.callback(server.close)
        part = server.divide(shard)
        first = FirstShard(str(addresses[0]), shard, part.size)
        resources.callback(first.close)
        beginning = first_answer(
            first.join, "the first shard", stop, give_up_s=options.give_up, pause_s=LOOK_S
        )
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
        operators.ready_if(
            lambda: None if first.is_heard else f"the first shard is not at {first.url}"
        )
        operators.show(servicer.saves.counts)
        operators.begin()
        if not first.until_over(part, stop, options.give_up):
            port.refuse_calls()
            servicer.save_last(first)
    return 0


def begin(
    server: ParameterServerBase, part: Slice, saver: PartSaver, beginning: shards_pb2.Beginning
) -> None:
    """Take the values that the first shard has named; CheckpointMismatch for a set not whole."""
    if beginning.HasField("set"):
        saver.name = _name_of(beginning.set)
        server.restore_latest_checkpoint()
        _log.info("global step is %d", server.global_t())
    else:
        part.begin_with(np.frombuffer(beginning.vector, "<f4"))


def require_own_bridge(algorithm: Algorithm) -> None:
    """Raise ConfigurationError for an algorithm whose bridge knows no shards."""
    if algorithm.BridgeControl is not BridgeControl:
        raise ConfigurationError("--shard: this algorithm has a bridge of its own")


def _message_of(name: SetName) -> shards_pb2.Set:
    return shards_pb2.Set(global_t=name.global_t, mark=name.mark)


def _name_of(message: shards_pb2.Set) -> SetName:
    return SetName(message.global_t, message.mark)
