"""Wires the processes of a parameter server that has several shards."""

from contextlib import ExitStack, closing
from pathlib import Path

from relaax.algorithm_base import NullMetrics, NullSaver, ParameterServerBase, Saver
from relaax.checkpoints.checkpoint_place import store_of
from relaax.configuration import ParameterServerConfiguration, ParameterServerOptions, S3Location
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.errors import ConfigurationError
from relaax.parameters import BridgeControl
from relaax.parameters.control import GrpcParameterServer
from relaax.parameters.process.shards.follower import Follower
from relaax.parameters.process.shards.following import (
    FirstStub,
    Following,
    NoParts,
    SavedParts,
    follow_until,
)
from relaax.parameters.process.shards.leader import Leader
from relaax.parameters.process.shards.service import ShardServicer, method_handlers
from relaax.parameters.process.shards.serving import FirstShard, OtherService
from relaax.parameters.sender_totals import SenderTotals
from relaax.processes.directory_lock import owned
from relaax.processes.shard import Shard
from relaax.processes.stop_signal import Stop
from relaax.telemetry.operators import OperatorPort, SaveRecord


def first_shard(
    algorithm: Algorithm,
    whole: ParameterServerBase,
    shard: Shard,
    saver: Saver,
    saves: SaveRecord,
    senders: SenderTotals,
) -> FirstShard:
    """Return the first shard of ``whole``, which is divided.

    ``saver`` keeps its parts, ``saves`` counts them, and ``senders`` remember whose steps were
    counted.
    """
    _require_own_bridge(algorithm)
    initial = whole.bridge().get_values().vector
    if initial is None:
        raise ConfigurationError("--shard: this algorithm has no values that could be divided")
    part = whole.divide(shard)
    return FirstShard(whole, Leader(shard, part, initial), part, shard, saver, saves, senders)


def follow(
    configuration: ParameterServerConfiguration, shard: Shard, operators: OperatorPort, stop: Stop
) -> int:
    """Hold a slice of the parameters, and do with it what the first shard says."""
    options, addresses = configuration.options, configuration.options.shards or ()
    algorithm = load_algorithm(configuration.algorithm.directory)
    _require_own_bridge(algorithm)
    config = make_config(algorithm, configuration.algorithm)
    with ExitStack() as resources:
        whole: ParameterServerBase = algorithm.ParameterServer(config, NullSaver(), NullMetrics())
        resources.callback(whole.close)
        part = whole.divide(shard)
        first = FirstStub(str(addresses[0]), shard, str(addresses[shard.index - 1]), part)
        directory, s3 = _place(options, shard)
        resources.enter_context(owned(directory, f"relaax-parameter-server --shard {shard}"))
        store = store_of(directory, s3, options.aws)
        follower = Follower(part, NoParts() if store is None else SavedParts(store), first.report)
        handlers = method_handlers(ShardServicer(follower, part.begin, part.size))
        service = OtherService(shard, first.url, NullMetrics())
        try:
            port = GrpcParameterServer(
                str(options.place), service, [handlers], vector_size=part.size
            )
        except OSError as error:
            raise ConfigurationError(f"--bind: {error}") from error
        resources.callback(port.stop, 1.0)
        following = resources.enter_context(closing(Following(follower, first)))
        print(f"shard {shard} at {options.place}; the first is at {first.url}", flush=True)
        operators.ready_if(
            lambda: None if following.is_connected else f"the first shard is not at {first.url}"
        )
        operators.show(follower.saved.counts)
        operators.begin()
        follow_until(following, stop, options.give_up)
    return 0


def _require_own_bridge(algorithm: Algorithm) -> None:
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
