"""Puts a parameter server together: the one place that reads its configuration."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import TypeAlias

import grpc

from relaax.algorithm_base import ParameterLink, ParameterServerBase, RunningParameterServer, Shard
from relaax.checkpoints import BlobStore, CheckpointSaver, Restore
from relaax.checkpoints.aws import object_key, s3_client
from relaax.checkpoints.checkpoint_place import saver_of, store_of
from relaax.checkpoints.checkpoint_sets import FirstSaver
from relaax.configuration import ParameterServerConfiguration, ParameterServerOptions
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.errors import ConfigurationError
from relaax.names.leases import Leases
from relaax.names.service import method_handlers
from relaax.net.listening import naming_bind
from relaax.parameters import BridgeControl
from relaax.parameters.control import GrpcParameterServer
from relaax.parameters.database import DatabaseName, DatabaseRoot, DatabaseWriter, Type
from relaax.parameters.process.evaluation import VersionEvaluation
from relaax.parameters.process.progress import TrainingProgress
from relaax.parameters.process.return_curve import PlotLabels, ReturnCurve
from relaax.parameters.process.shards import FirstServicer, OtherShards, require_own_bridge
from relaax.parameters.process.standstill import Standstill
from relaax.parameters.process.training_figures import TrainingFigures
from relaax.parameters.process.training_monitor import TrainingMonitor
from relaax.parameters.process.versions import StoredVersions, TagRule, VersionPusher
from relaax.parameters.sender_totals import SenderTotals
from relaax.parameters.stage import Stage
from relaax.populations.membership import Membership
from relaax.populations.service import method_handlers as member_handlers
from relaax.processes.directory_lock import owned
from relaax.telemetry.metrics import OF_CLIENT, OF_EVALUATING_CLIENT, Metrics
from relaax.telemetry.operators import OperatorPort, counter, gauge
from relaax.telemetry.operators.families import Metric, gauges
from relaax.telemetry.training import (
    ClientMetricLimits,
    EventWriter,
    RunRecord,
    S3Mirror,
    SeveralMetrics,
    WandbWriter,
    describe_run,
    worker_runs,
)

#: A value that has not been stored again for so long is not shown: it may not hold any more.
FORGOTTEN_AFTER_S = 300.0

#: Not shown: clients choose these names, and Prometheus keeps a time series for each.
_WITHOUT = (OF_CLIENT, OF_EVALUATING_CLIENT)

_log = logging.getLogger(__name__)

#: How often the values that a learner has published are saved between checkpoints, and pushed to a
#: parameter database: S3 takes a fee for each object.
PUBLISHED_INTERVAL_S = 1.0

PUBLISHED_INTERVAL_AT_S3_S = 30.0

#: How often it is written how far the metrics of a run are, to a directory and to S3.
RECORD_INTERVAL_S, RECORD_INTERVAL_AT_S3_S = 5.0, 60.0


class NewestScalars(Metrics):
    """Keeps the last value of each scalar, whoever stored it. For several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._values: dict[str, tuple[float, float]] = {}

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Keep ``y`` in the place of the value before."""
        if not name.startswith(_WITHOUT):
            with self._lock:
                self._values[name] = (float(y), self._clock())

    def figures(self) -> Iterable[Metric]:
        """Return the values that were stored lately, by name."""
        oldest = self._clock() - FORGOTTEN_AFTER_S
        with self._lock:
            self._values = {
                name: (value, at) for name, (value, at) in self._values.items() if at >= oldest
            }
            values = {name: value for name, (value, _) in self._values.items()}
        means = "The newest value of each metric that TensorBoard shows"
        return [gauges("scalar", means, "name", values)]


def figures(parameter_server: ParameterServerBase, progress: TrainingProgress) -> Iterable[Metric]:
    """Yield how a training is; unknown figures are left out."""
    yield gauge("global_step", "Environment steps of all agents together", progress.global_t)
    updates = parameter_server.updates()
    if updates is not None:
        yield counter("updates", "Updates of the parameters, of earlier starts too", updates)
    yield gauge("steps_per_second", "The same in the last seconds", progress.steps_per_s)
    for name, means, value in (
        ("last_global_step", "The global step at which the training is over", progress.last_t),
        ("mean_return", "Mean return of the latest episodes", progress.mean_return),
        ("goal_return", "The mean return at which the training is over", progress.goal_return),
        ("mean_evaluation", "Mean return of the latest evaluations", progress.mean_evaluation),
        ("training_environments", "Environments of all RLX servers", progress.environments),
        ("training_connections", "Connections of all RLX servers", progress.connections),
    ):
        if value is not None:
            yield gauge(name, means, value)


#: Answers the callers of a bridge.
Listen: TypeAlias = Callable[[ParameterLink], RunningParameterServer]


def training_monitor(
    configuration: ParameterServerConfiguration,
    resources: ExitStack,
    operators: OperatorPort,
    listen: Listen | None = None,
) -> TrainingMonitor:
    """Wire the parts together; ``resources`` will close them, and ``operators`` see them.

    ``listen`` takes the place of the port for workers.
    """
    options = configuration.options
    algorithm = load_algorithm(configuration.algorithm.directory)
    config = make_config(algorithm, configuration.algorithm)
    global_step = _GlobalStep()
    resources.enter_context(owned(options.checkpoint_dir, "relaax-parameter-server"))
    store = store_of(options.checkpoint_dir, options.checkpoint_aws_s3, options.aws)
    standstill = Standstill(algorithm.has_learner(config), config.rollout_steps(), config.learns())
    events = _event_files(configuration, global_step, resources)
    metrics = _metrics(configuration, global_step, events, store, resources, operators)
    training = TrainingFigures(metrics, standstill, options.goal_episodes)
    senders = SenderTotals()
    kept = options.checkpoints_to_keep, options.keep_best
    saver = saver_of(store, *kept, options.restore, training.returns.earned, senders)
    if isinstance(saver, CheckpointSaver):
        training.on_score = saver.scores.add
        resources.callback(saver.close)
    others = _other_shards(options, resources, algorithm)
    saves_to = saver if others is None else FirstSaver(saver, others.save_parts)
    parameter_server: ParameterServerBase = algorithm.ParameterServer(config, saves_to, training)
    resources.callback(parameter_server.close)
    database = _database(options, resources, algorithm)
    versions = _stored(database, operators)
    membership, stage = _evaluate(database, options, training, store, resources)
    if listen is not None:
        answer: Callable[[], RunningParameterServer] = partial(listen, parameter_server.bridge())
    elif others is not None and isinstance(saves_to, FirstSaver):
        answer = _first_port(str(options.place), parameter_server, others, saves_to, senders)
        operators.ready_if(others.missing)
        operators.show(others.figures)
    else:
        answer = partial(
            _port,
            str(options.place),
            algorithm,
            parameter_server,
            senders,
            versions,
            member_handlers(membership, database),
            stage,
        )
    global_step.parameter_server = parameter_server
    _restore(parameter_server)
    _push_versions(parameter_server.bridge(), database, options, resources)
    if events is not None:
        events.begin(parameter_server.global_t())
    labels = PlotLabels(configuration.run_name, options.goal_episodes, options.goal_return)
    curve = None if store is None else ReturnCurve(store, labels)
    if curve is not None:
        curve.restore(parameter_server.global_t())
    with naming_bind():
        port = answer()
    monitor = TrainingMonitor(
        parameter_server,
        port,
        training,
        senders,
        goal_return=options.goal_return,
        checkpoint_interval_s=options.checkpoint_interval,
        published_interval_s=(
            PUBLISHED_INTERVAL_S
            if options.checkpoint_aws_s3 is None
            else PUBLISHED_INTERVAL_AT_S3_S
        ),
        keeps_serving=options.keep_serving,
        curve=curve,
        missing=(lambda: None) if others is None else others.missing,
    )
    operators.show(lambda: figures(parameter_server, monitor.progress()))
    operators.show(standstill.figures)
    operators.note(lambda: standstill.said)
    if store is not None:
        operators.show(monitor.saves.figures)
    operators.begin()
    return monitor


def _database(
    options: ParameterServerOptions, resources: ExitStack, algorithm: Algorithm
) -> DatabaseWriter | None:
    """Return the parameter database of the policy, where there is to be one."""
    place = options.database_dir or options.database_aws_s3
    if place is None or options.database_name is None:
        return None
    if algorithm.BridgeControl is not BridgeControl:
        raise ConfigurationError("--database-dir: this algorithm has a bridge of its own")
    type_, mongodb = Type[options.database_type.upper()], options.database_mongodb or ""
    root = DatabaseRoot(place, type_, options.aws, mongodb, options.database_expire_days)
    name = DatabaseName(*options.database_name)
    return resources.enter_context(root.writer(name, "relaax-parameter-server"))


def _stored(database: DatabaseWriter | None, operators: OperatorPort) -> StoredVersions | None:
    """Return the versions of a database, where there is one; ``operators`` see them."""
    if database is None:
        return None
    versions = StoredVersions(database)
    operators.page("database", versions.shown)
    return versions


def _push_versions(
    values: ParameterLink,
    database: DatabaseWriter | None,
    options: ParameterServerOptions,
    resources: ExitStack,
) -> None:
    """Push what is learnt to its database, where there is one, until ``resources`` are closed."""
    if database is not None:
        rule = TagRule(
            options.push_frequency_seconds, options.push_frequency_steps, options.push_initial
        )
        in_s3 = options.database_aws_s3 is not None
        interval_s = PUBLISHED_INTERVAL_AT_S3_S if in_s3 else PUBLISHED_INTERVAL_S
        pusher = VersionPusher(values, database, rule, interval_s)
        resources.callback(pusher.close)
        pusher.begin()


def _evaluate(
    database: DatabaseWriter | None,
    options: ParameterServerOptions,
    training: TrainingFigures,
    store: BlobStore | None,
    resources: ExitStack,
) -> tuple[Membership, Callable[[], Stage | None]]:
    """Count the evaluated episodes of versions, until ``resources`` are closed.

    They are there for a population's manager, and for a database where there is one. Returns a
    function, too, that returns the stage of the policy's curriculum, if it has one.
    """
    membership = Membership(store)
    if database is None:
        training.on_evaluated = membership.note
        return membership, lambda: None
    evaluation = VersionEvaluation(database, options.eval_managers, training)
    resources.callback(evaluation.close)
    evaluation.begin()
    training.on_evaluated = lambda name, version, y: [
        note(name, version, y) for note in (membership.note, evaluation.note)
    ]
    return membership, evaluation.stage


def _port(
    address: str,
    algorithm: Algorithm,
    parameter_server: ParameterServerBase,
    senders: SenderTotals,
    versions: StoredVersions | None,
    members: grpc.GenericRpcHandler,
    stage: Callable[[], Stage | None],
) -> RunningParameterServer:
    control = algorithm.BridgeControl
    others = [method_handlers(Leases()), members]
    own = BridgeControl(senders, others, versions, stage) if control is BridgeControl else control()
    return own.start_parameter_server(address, parameter_server.bridge())


def _restore(parameter_server: ParameterServerBase) -> None:
    """Restore the latest checkpoint, and say so."""
    _log.info("looking for a checkpoint in %s", parameter_server.checkpoint_location())
    parameter_server.restore_latest_checkpoint()
    _log.info("global step is %d", parameter_server.global_t())
    if parameter_server.global_t() > 0:
        where = parameter_server.checkpoint_location()
        print(f"restored global step {parameter_server.global_t():,} from {where}", flush=True)


def _other_shards(
    options: ParameterServerOptions, resources: ExitStack, algorithm: Algorithm
) -> OtherShards | None:
    """Return the other shards, where this is the first of several."""
    if options.shard is None:
        return None
    require_own_bridge(algorithm)
    others = OtherShards(list(map(str, options.shards or ())))
    resources.callback(others.close)
    return others


def _first_port(
    address: str,
    parameter_server: ParameterServerBase,
    others: OtherShards,
    saver: FirstSaver,
    senders: SenderTotals,
) -> Callable[[], RunningParameterServer]:
    """Let a parameter server own the first slice; return the function that opens its port."""
    initial = parameter_server.bridge().pull().vector
    if initial is None:
        raise ConfigurationError("--shard: this algorithm has no values that could be divided")
    part = parameter_server.divide(Shard(1, others.count))

    def save() -> None:
        with senders.recording():
            parameter_server.save_checkpoint()

    servicer = FirstServicer(others.count, initial, saver, save)
    return lambda: GrpcParameterServer(
        address,
        parameter_server.bridge(),
        [servicer.handlers(), method_handlers(Leases())],
        missing=lambda: others.missing() or "",
        senders=senders,
        part=part,
    )


class _GlobalStep:
    """The step at which metrics are stored; 0 until the parameter server, which counts, is made."""

    parameter_server: ParameterServerBase | None = None

    def __call__(self) -> int:
        return 0 if self.parameter_server is None else self.parameter_server.global_t()


def _metrics(
    configuration: ParameterServerConfiguration,
    global_step: _GlobalStep,
    events: EventWriter | None,
    store: BlobStore | None,
    resources: ExitStack,
    operators: OperatorPort,
) -> ClientMetricLimits:
    options = configuration.options
    places: list[Metrics] = [] if events is None else [events]
    if operators.is_open:
        newest = NewestScalars()
        operators.show(newest.figures)
        places.append(newest)
    if options.wandb_project is not None:
        wandb = WandbWriter(
            options.wandb_project,
            configuration.run_name,
            global_step,
            configuration.algorithm.parameters,
            options.metrics_dir,
            RunRecord(store, is_new=not Restore.parse(options.restore).is_latest),
            RECORD_INTERVAL_S if options.checkpoint_aws_s3 is None else RECORD_INTERVAL_AT_S3_S,
        )
        resources.callback(wandb.close)
        places.append(wandb)
    runs = worker_runs(options.wandb_runs, resources, global_step)
    if runs is not None:
        places.append(runs)
    limited = ClientMetricLimits(
        SeveralMetrics(places), options.max_client_metric_names, options.max_client_metric_rate
    )
    operators.show(limited.figures)
    return limited


def _event_files(
    configuration: ParameterServerConfiguration, global_step: _GlobalStep, resources: ExitStack
) -> EventWriter | None:
    options = configuration.options
    if options.metrics_dir is None:
        if options.metrics_aws_s3 is not None:
            raise ConfigurationError("--metrics-aws-s3 needs --metrics-dir, whose files it copies")
        return None
    directory = options.metrics_dir / configuration.run_name
    written = options.model_dump(by_alias=True, exclude_unset=True)
    algorithm = configuration.algorithm
    description = describe_run(
        written, configuration.rlx_server, algorithm.directory.name, algorithm.parameters
    )
    writer = EventWriter(directory, global_step, description)
    if options.metrics_aws_s3 is not None:
        s3 = options.metrics_aws_s3
        client = s3_client(options.aws)
        key = object_key(s3.key, configuration.run_name)
        mirror = S3Mirror(directory, client, s3.bucket, key)
        resources.callback(mirror.close)
    resources.callback(writer.close)
    return writer
