"""The command ``relaax-replay-server``, which wires the process together."""

import secrets
import sys
import time
from contextlib import ExitStack, closing

import numpy as np

from relaax.errors import ConfigurationError
from relaax.replay.specs import ReplaySpec
from relaax.server.common.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.server.common.configuration import (
    ReplayServerConfiguration,
    ReplayServerOptions,
    leave_undisturbed,
    load_replay_server,
    run_command,
)
from relaax.server.common.logs import start_logging
from relaax.server.common.replay_port import LINGER_S, ReplayPort
from relaax.server.common.stop_signal import StopSignal
from relaax.server.common.training_watch import TrainingWatch
from relaax.server.replay_server.meter import ReplayMeter
from relaax.server.replay_server.server import Task, run_tasks

#: How often writers whose lease is over are looked for, and metrics are stored.
TEND_S = 1.0


def main() -> int:
    """Run a replay server and return the exit status."""
    status = run_command("relaax-replay-server", lambda: _serve(sys.argv[1:]))
    leave_undisturbed()
    return status


def _serve(arguments: list[str]) -> int:
    configuration = load_replay_server(arguments)
    options = configuration.options
    start_logging(options.log_level)
    stop = StopSignal()
    with ExitStack() as resources:
        algorithm = load_algorithm(configuration.algorithm.directory)
        spec = _share(configuration, algorithm)
        seed = configuration.algorithm.parameters.get("seed")
        replay = spec.make(_random(options, seed), options.lease)
        bridge = algorithm.BridgeControl().parameter_server_stub(str(options.parameter_server))
        resources.callback(bridge.close)
        try:
            port = resources.enter_context(closing(ReplayPort(options.bind, replay)))
        except OSError as error:
            raise ConfigurationError(f"--bind: {error}") from error
        watch = resources.enter_context(closing(TrainingWatch(bridge, lambda: replay.actions)))
        meter = ReplayMeter(replay, bridge.metrics(), options.own_name)
        print(f"storing what is delivered at {options.bind}", flush=True)
        tasks = [Task(TEND_S, replay.reclaim), Task(TEND_S, meter.store)]
        run_tasks(tasks, stop, lambda: watch.is_over)
        if watch.is_over:
            replay.end()
            time.sleep(LINGER_S)
        port.close()
    return 0


def _share(configuration: ReplayServerConfiguration, algorithm: Algorithm) -> ReplaySpec:
    """Return what this server stores; ConfigurationError for an algorithm without a learner."""
    section, options = configuration.algorithm, configuration.options
    if not algorithm.has_learner:
        raise ConfigurationError(
            f"algorithm {section.directory} has no learner: nothing is stored for it, and "
            "relaax-replay-server is not needed"
        )
    whole = algorithm.replay_spec(make_config(algorithm, section))
    return whole.share(len(options.replay_servers or (options.bind,)))


def _random(options: ReplayServerOptions, seed: int | None) -> np.random.Generator:
    """Return random numbers that no other server of the training has."""
    if seed is None:
        return np.random.default_rng(secrets.randbits(64))
    return np.random.default_rng([seed, 3, *options.own_name.encode()])


if __name__ == "__main__":
    sys.exit(main())
