"""The command ``relaax-replay-server``, which wires the process together."""

import logging
import secrets
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from typing import NoReturn

import numpy as np

from relaax.checkpoints.checkpoint_place import store_of, wait_for_store
from relaax.configuration import (
    ReplayServerConfiguration,
    ReplayServerOptions,
    leave_at_once,
    load_replay_server,
    run_command,
)
from relaax.configuration.access import begin_server
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.configuration.commands import REPLAY_SERVER
from relaax.net.listening import naming_bind, require_allowed
from relaax.parameters.training_watch import TrainingWatch
from relaax.processes.directory_lock import owned
from relaax.processes.periodic_tasks import Task, TasksThread, run_tasks
from relaax.processes.stop_signal import StopSignal
from relaax.replay.process.replay_contents import Contents, restored_contents
from relaax.replay.process.replay_memory import replay_in_memory
from relaax.replay.process.replay_metrics import ReplayMetrics, replay_figures
from relaax.replay.replay import Replay
from relaax.replay.service import LINGER_S, ReplayPort
from relaax.replay.specs import ReplaySpec
from relaax.telemetry.kept_counts import CountsRow, KeptCounts
from relaax.telemetry.live_lines import LiveLineWriter
from relaax.telemetry.operators import OperatorPort, SaveRecord, operator_listener
from relaax.telemetry.operators.families import Metric, counters
from relaax.telemetry.operators.port import away
from relaax.telemetry.training import worker_runs

_log = logging.getLogger(__name__)

#: Actions since the start: stored ones, and those that the parameter server has counted.
STORED, COUNTED = "stored", "counted"

#: How often expired writers are looked for, and metrics are stored.
TEND_S = 1.0


def main() -> NoReturn:
    """Run a replay server, and end with its exit status."""
    leave_at_once(run_command("relaax-replay-server", lambda: serve(sys.argv[1:])))


def serve(arguments: list[str]) -> int:
    """Serve as the command line says, until asked to stop; return the exit status."""
    configuration = load_replay_server(arguments)
    options = configuration.options
    begin_server(options, "relaax-replay-server")
    require_allowed(bind=options.bind, http_bind=options.http_bind)
    stop = StopSignal()
    with ExitStack() as resources:
        operators = resources.enter_context(
            closing(OperatorPort(operator_listener(options.http_bind)))
        )
        if not wait_for_store(options.checkpoint_aws_s3, options.aws, options.give_up, stop):
            return 0
        algorithm = load_algorithm(configuration.algorithm.directory)
        spec = _share(configuration, algorithm)
        seed = configuration.algorithm.parameters.get("seed")
        directory = options.checkpoint_dir
        is_saved = directory is not None or options.checkpoint_aws_s3 is not None
        replay = replay_in_memory(spec, _random(options, seed), options.lease, is_saved)
        own = None if directory is None else directory / options.own_name
        resources.enter_context(owned(own, "relaax-replay-server"))
        saves = SaveRecord(options.checkpoint_interval)
        contents = _contents(options, replay, spec, saves)
        bridge = algorithm.BridgeControl().parameter_server_stub(str(options.parameter_server))
        resources.callback(bridge.close)
        runs = worker_runs(options.wandb_runs, resources)
        if runs is not None:
            bridge.copy_metrics_to(runs)
        new_actions = _new_actions(replay)  # before any come
        kept = KeptCounts([STORED, COUNTED]).row()
        replay.on_stored(partial(kept.add, STORED))
        port = resources.enter_context(closing(_port(options, replay)))
        watch = TrainingWatch(
            bridge, new_actions, give_up_s=options.give_up, on_counted=partial(kept.add, COUNTED)
        )
        resources.enter_context(closing(watch))
        metrics = ReplayMetrics(replay.stats, bridge.metrics(), group=f"replay {options.own_name}")
        saving = resources.enter_context(
            closing(TasksThread(_saving(options, contents), "save the replay"))
        )
        operators.ready_if(away(watch.silence_s))
        operators.show(replay_figures(replay.stats))
        operators.show(lambda: [_actions(kept)])
        if contents is not None:
            operators.show(saves.figures)
        operators.begin()
        print(f"storing what is delivered at {options.bind}", flush=True)
        tasks = _tasks(options, replay, metrics)
        run_tasks(tasks, stop, lambda: watch.is_over or watch.is_abandoned)
        if watch.is_over:
            replay.end()
            time.sleep(LINGER_S)
        _finish(port, saving, contents)
        watch.require_known()
    print(f"stopped; {replay.stored:,} steps of environments were delivered", flush=True)
    return 0


def _contents(
    options: ReplayServerOptions, replay: Replay, spec: ReplaySpec, saves: SaveRecord
) -> Contents | None:
    """Restore saved contents, if a place is given; return the function that saves them again."""
    place = options.checkpoint_dir, options.checkpoint_aws_s3, options.aws
    store = store_of(*place, options.own_name)
    if store is None:
        _log.warning(
            "the stored steps are not saved: there is neither --checkpoint-dir nor "
            "--checkpoint-aws-s3. Steps that are lost with this server must come anew"
        )
        return None
    return restored_contents(replay, spec, store, saves)


def _port(options: ReplayServerOptions, replay: Replay) -> ReplayPort:
    with naming_bind():
        return ReplayPort(options.bind, replay)


def _new_actions(replay: Replay) -> Callable[[], int]:
    """Return a counter of actions from now on; restored ones have been counted."""
    restored = replay.actions
    return lambda: replay.actions - restored


def _actions(kept: CountsRow) -> Metric:
    return counters(
        "replay_actions",
        "Steps but those in which an episode was cut off, since the start",
        "how",
        {how: kept[how] for how in (STORED, COUNTED)},
    )


def _finish(port: ReplayPort, saving: TasksThread, contents: Contents | None) -> None:
    """Save all that has been acknowledged, when the save that may go on is done."""
    saving.stop()
    port.close()  # steps acknowledged from now on would not be saved
    saving.close()
    if contents is not None:
        contents.save()


def _saving(options: ReplayServerOptions, contents: Contents | None) -> list[Task]:
    """Run the slow parts of a save: copying, encoding and writing."""
    return [] if contents is None else [Task(options.checkpoint_interval, contents.save_or_warn)]


def _tasks(options: ReplayServerOptions, replay: Replay, metrics: ReplayMetrics) -> list[Task]:
    line = LiveLineWriter("replay", metrics.figures)
    tasks = [Task(TEND_S, do) for do in (replay.reclaim, metrics.store, line.write_if_due)]
    if options.evict_after is not None:
        tasks.append(Task(options.evict_interval, partial(replay.evict, options.evict_after)))
    return tasks


def _share(configuration: ReplayServerConfiguration, algorithm: Algorithm) -> ReplaySpec:
    """Return the server's replay; ConfigurationError for an algorithm without a learner."""
    section, options = configuration.algorithm, configuration.options
    config = make_config(algorithm, section)
    algorithm.require_learner(config, REPLAY_SERVER.name)
    whole = algorithm.replay_spec(config)
    return whole.share(len(options.replay_servers or (options.bind,)))


def _random(options: ReplayServerOptions, seed: int | None) -> np.random.Generator:
    """Return random numbers that no other server of the training has."""
    if seed is None:
        return np.random.default_rng(secrets.randbits(64))
    return np.random.default_rng([seed, 3, *options.own_name.encode()])


if __name__ == "__main__":
    main()
