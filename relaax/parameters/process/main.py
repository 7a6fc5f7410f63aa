"""The command ``relaax-parameter-server``, which wires the process together."""

import logging
import sys
from contextlib import ExitStack, closing
from typing import NoReturn

from relaax.address import Address
from relaax.checkpoints.checkpoint_list import print_checkpoints
from relaax.checkpoints.checkpoint_place import wait_for_store
from relaax.configuration import (
    ParameterServerConfiguration,
    leave_at_once,
    load_parameter_server,
    run_command,
)
from relaax.configuration.access import begin_server
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.errors import ConfigurationError
from relaax.net.listening import naming_bind, require_allowed
from relaax.parameters import Bridge, BridgeControl
from relaax.parameters.process.replica import (
    PRIMARY_WAIT_S,
    ReplicaService,
    follow_when_there,
    keep_up,
)
from relaax.parameters.process.shards import serve_slice
from relaax.parameters.process.wiring import training_monitor
from relaax.processes.allocator import FEW_POOLS, keep_memory
from relaax.processes.stop_signal import StopSignal
from relaax.telemetry.operators import OperatorPort, gauge, operator_listener
from relaax.telemetry.operators.port import AWAY_S

_log = logging.getLogger(__name__)


def main() -> NoReturn:
    """Run a parameter server, and end with its exit status."""
    leave_at_once(run_command("relaax-parameter-server", lambda: _serve(sys.argv[1:])))


def _serve(arguments: list[str]) -> int:
    configuration = load_parameter_server(arguments)
    options = configuration.options
    begin_server(options, "relaax-parameter-server")
    if options.list_checkpoints:
        return print_checkpoints(options.checkpoint_dir, options.checkpoint_aws_s3, options.aws)
    placed_by = "bind" if options.place is options.bind else "shards"
    require_allowed(**{placed_by: options.place}, http_bind=options.http_bind)
    stop = StopSignal()
    with closing(OperatorPort(operator_listener(options.http_bind))) as operators:
        # Every update makes and frees vectors of the network's size, in one of many threads.
        keep_memory(FEW_POOLS)
        if options.replica_of is not None:
            return _replicate(configuration, options.replica_of, operators, stop)
        if options.shard is None and options.shards is not None:
            raise ConfigurationError(
                f"--shards lists {len(options.shards)} shards: say which of them this is, with "
                f"--shard 1/{len(options.shards)} for the first"
            )
        if options.shard is not None and options.shards is None:
            raise ConfigurationError(
                f"--shard {options.shard} needs --shards, the addresses of all of them"
            )
        for place in (options.checkpoint_aws_s3, options.database_aws_s3):
            if not wait_for_store(place, options.aws, options.give_up, stop):
                return 0
        if options.shard is not None and not options.shard.is_first:
            return serve_slice(configuration, options.shard, operators, stop)
        with ExitStack() as resources:
            training_monitor(configuration, resources, operators).run(stop)
    return 0


def _replicate(
    configuration: ParameterServerConfiguration,
    primary: Address,
    operators: OperatorPort,
    stop: StopSignal,
) -> int:
    """Serve the values of another parameter server."""
    algorithm, options = load_algorithm(configuration.algorithm.directory), configuration.options
    if algorithm.BridgeControl is not BridgeControl:
        raise ConfigurationError("--replica-of: this algorithm has a bridge of its own")
    with ExitStack() as resources:
        # Short: a worker that waits for the primary holds a thread of the replica.
        bridge = Bridge(str(primary), retry_for_s=PRIMARY_WAIT_S)
        resources.callback(bridge.close)
        service = follow_when_there(bridge, stop, options.give_up)
        if service is None:
            return 0
        with naming_bind():
            port = BridgeControl().start_parameter_server(str(options.bind), service)
        resources.callback(port.stop, 1.0)
        print(f"a replica of {primary} at {options.bind}", flush=True)
        operators.ready_if(lambda: _outdated(service))
        operators.show(lambda: [gauge("age_seconds", "Age of the served values", service.age_s())])
        operators.begin()
        keep_up(service, port, stop, options.give_up)
    return 0


def _outdated(service: ReplicaService) -> str | None:
    age_s = service.age_s()
    return f"the primary has not answered for {age_s:.0f} s" if age_s > AWAY_S else None


if __name__ == "__main__":
    main()
