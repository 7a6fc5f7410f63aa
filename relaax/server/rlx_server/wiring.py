"""Puts an RLX server together: the one place that reads its configuration."""

import itertools
import selectors
import socket
import zlib
from collections.abc import Callable, Iterator
from functools import partial

from relaax.algorithm_base import ConfigBase, Evaluation
from relaax.configuration import RlxServerConfiguration, RlxServerOptions
from relaax.configuration.algorithm_loader import Algorithm, load_algorithm, make_config
from relaax.net.access import Access, current_access
from relaax.net.access.tls import server_contexts
from relaax.processes.cgroups import usable_cores
from relaax.processes.run_variables import run_of_this_process
from relaax.protocol import FrameConnection
from relaax.protocol.framing import DEFAULT_MAX_FRAME_BYTES
from relaax.protocol.tls_socket import TlsSocket
from relaax.server.exploitation import CheckpointReader, restore_trained
from relaax.server.rlx_server.admission import MIB, ShareAdmission, WorkerAdmission
from relaax.server.rlx_server.children import Children, Watchdog
from relaax.server.rlx_server.connection_workers import ConnectionWorkers
from relaax.server.rlx_server.entrance import Guard
from relaax.server.rlx_server.limits import ClientLimits, ConnectionLimits, message_limit
from relaax.server.rlx_server.lobby import Lobby
from relaax.server.rlx_server.server import RlxServer, Workers
from relaax.server.rlx_server.shared_workers import SharedWorkers
from relaax.server.rlx_server.tally import Cell, Tally
from relaax.server.rlx_server.watcher import served, watch_and_tell
from relaax.server.rlx_server.worker.process import run_connection_worker, run_shared_worker
from relaax.server.rlx_server.worker.settings import Exploitation, WorkerSettings
from relaax.spaces import numbers_of
from relaax.telemetry.operators import operator_listener

#: The expected memory of the first connection, with a worker of its own and in a shared one.
WORKER_MIB, SHARE_MIB = 128.0, 1.0

#: An environment has a rollout that fills, and one that is learnt from; of 32-bit numbers.
_ROLLOUTS, _NUMBER_BYTES = 2, 4


def rlx_server(configuration: RlxServerConfiguration, listener: socket.socket) -> RlxServer:
    """Return the RLX server of a configuration, which accepts from ``listener``.

    Shared modules of the workers are imported before they are forked.
    """
    options = configuration.options
    algorithm = load_algorithm(configuration.algorithm.directory)
    config = make_config(algorithm, configuration.algorithm)
    if options.inference_servers is None:
        algorithm.prepare_to_fork()
    else:
        algorithm.require_remote_inference(config)
    access = current_access()
    exploitation = _exploitation(options, algorithm, config)
    settings = WorkerSettings(
        algorithm=algorithm,
        config=config,
        parameter_server=str(options.parameter_server),
        deliver_to=[str(each) for each in options.replay_servers or (options.learner,)],
        inference_servers=[str(each) for each in options.inference_servers or ()],
        drops_experience=options.when_full == "drop",
        spread=options.spread,
        timeout_s=options.timeout,
        give_up_s=options.give_up,
        open_connection=_connections(options, config, access),
        max_frame_bytes=options.max_frame_bytes,
        max_environments=options.max_environments,
        algorithm_name=configuration.algorithm.directory.name,
        exploitation=exploitation,
        run=run_of_this_process(),
        guard=Guard(access.tokens, options.hello_timeout, access.refusals),
        limits=ClientLimits(
            options.max_message_rate, options.max_metric_rate, options.max_episode_steps
        ),
    )
    operators = operator_listener(options.http_bind)
    selector, children = selectors.DefaultSelector(), Children()
    children.parents_own(selector)
    tally = Tally(deliver=algorithm.has_learner(config))
    first_mib = first_connection_mib(options, config)
    tally.state[Cell.NEEDED] = first_mib * MIB
    seeds = seeds_of_workers(listener, options.seed)
    count = shared_workers_of(options, config)
    workers: Workers
    if count is None:
        workers = ConnectionWorkers(
            children,
            WorkerAdmission(first_mib),
            seeds,
            tally,
            partial(run_connection_worker, settings),
        )
    else:
        workers = SharedWorkers(
            count,
            children,
            ShareAdmission(first_mib),
            selector,
            seeds,
            tally,
            partial(run_shared_worker, settings),
        )
    return RlxServer(
        listener,
        selector,
        children,
        workers,
        watch=partial(watch_and_tell, settings, tally, operators),
        served=lambda: served(settings, tally),
        state=tally.state,
        watchdog=Watchdog(tally.state, options.worker_timeout),
        drain_s=options.drain,
        limits=ConnectionLimits(options.max_connections, options.max_connections_per_address),
        lobby=Lobby(
            settings.guard,
            settings.open_connection,
            tally.state,
            (Cell.TURNED_AWAY, Cell.ACCESS_DENIED),
        ),
        operators=operators,
    )


def _connections(
    options: RlxServerOptions, config: ConfigBase, access: Access
) -> Callable[[socket.socket], FrameConnection]:
    """Return the constructor of a connection from an accepted socket."""
    framed = partial(
        FrameConnection,
        max_frame_bytes=options.max_frame_bytes or DEFAULT_MAX_FRAME_BYTES,
        max_received_bytes=options.max_frame_bytes or message_limit(config.observation_space(), 1),
        frame_timeout_s=options.message_timeout,
        is_servers=True,
    )
    if access.tls is None or access.tls.cert is None:
        return framed
    contexts = server_contexts(access.tls, access.environments_need_certificates)
    return lambda sock: framed(TlsSocket(sock, contexts.content()))


def _exploitation(
    options: RlxServerOptions, algorithm: Algorithm, config: ConfigBase
) -> Exploitation | None:
    """Return the policy of ``--exploit``: all workers share its parameters, which are read here."""
    if options.exploit is None:
        return None
    checkpoints = CheckpointReader(
        options.checkpoint_dir, options.checkpoint_aws_s3, options.aws, options.exploit, "--exploit"
    )
    trained = restore_trained(algorithm, config, checkpoints)
    evaluation = Evaluation.STOCHASTIC if options.stochastic else Evaluation.DETERMINISTIC
    print(
        f"exploiting global step {trained.global_t:,} from {trained.location}, with "
        f"{evaluation.value} actions: nothing is learnt",
        flush=True,
    )
    return Exploitation(trained, evaluation)


def shared_workers_of(options: RlxServerOptions, config: ConfigBase) -> int | None:
    """Return how many workers share the connections; None for a worker for each connection."""
    if options.workers == "connection":
        return None
    if options.workers == "auto":
        return 1 if config.uses_gpu() else usable_cores()
    return options.workers


def first_connection_mib(options: RlxServerOptions, config: ConfigBase) -> float:
    """Return ``--worker-memory``, the default filled in."""
    if options.worker_memory is not None:
        return options.worker_memory
    states = config.rollout_steps() * numbers_of(config.observation_space())
    rollouts_mib = _ROLLOUTS * _NUMBER_BYTES * states / MIB
    return max(WORKER_MIB if options.workers == "connection" else SHARE_MIB, rollouts_mib)


def seeds_of_workers(listener: socket.socket, seed: int | None) -> Iterator[int]:
    """Return random numbers that no two RLX servers share, unless their seeds agree."""
    if seed is None:
        address = f"{socket.gethostname()} {listener.getsockname()[:2]}"
        seed = zlib.crc32(address.encode())
    return itertools.count(seed << 32)
