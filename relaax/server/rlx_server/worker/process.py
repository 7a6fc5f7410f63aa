"""The process of a worker."""

import logging
import socket
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

from relaax.algorithm_base import BatchAgentBase, ParameterLink
from relaax.errors import BridgeError, ConfigurationError, ParameterServerAway, TokenRefused
from relaax.inference.client import InferenceAway, InferenceClient
from relaax.inference.servers import servers_of
from relaax.processes.allocator import keep_memory, spare_memory
from relaax.protocol import FrameConnection
from relaax.protocol.binary import ErrorCode
from relaax.replay.client.spread import SpreadWriter, StepReports, writer_to
from relaax.server.exploitation import agent_to_exploit, exploiting
from relaax.server.rlx_server.handover import Inbox
from relaax.server.rlx_server.tally import EPISODES, RETURNS, TURN_BEGAN, WorkerRow
from relaax.server.rlx_server.worker.agents import Agents, SeparateAgents
from relaax.server.rlx_server.worker.loop import Worker
from relaax.server.rlx_server.worker.settings import Purpose, WorkerSettings, first_seed, seed_after
from relaax.server.rlx_server.worker.stopping import StopRequest
from relaax.telemetry.kept_counts import DELIVERED, DROPPED
from relaax.telemetry.metrics import EPISODE_REWARD, Metrics
from relaax.telemetry.throttled_log import FailureLog, in_words

_log = logging.getLogger(__name__)

#: Exit status of a worker that waited too long for its parameter server, or for inference servers.
PARAMETER_SERVER_IS_AWAY = 1

#: Exit status of a worker when starting it again would not help.
CONFIGURATION_IS_WRONG = 2

#: Exit status of a worker whose algorithm raised an exception, here or at the parameter server. If
#: that happened before it served its first client, starting it again would not help either.
ALGORITHM_HAS_FAILED = 3

#: Exit status of a worker that another server does not know by its token. Before it has served its
#: first client, starting it again would not help; later the files of tokens agree in a moment.
TOKEN_IS_REFUSED = 4

#: Clients get this message: the reason is for the operators of the server.
_REFUSED = "the server is refused by its own parameter server or replay; its log says why"

#: The network is made ready for batches of up to so many environments before any client comes.
WARMED_ENVIRONMENTS = 128

#: A thread that learns must not keep the one that acts waiting: Python's default is 5 ms.
_THREAD_SWITCH_S = 0.0002


class EpisodeCount(Metrics):
    """Counts the returns of episodes in ``row``, and drops all other scalars."""

    def __init__(self, row: WorkerRow) -> None:
        self._row = row

    def scalar(self, name: str, y: float, x: float | None = None) -> None:
        """Count ``y`` if it is the return of an episode that has ended."""
        if name == EPISODE_REWARD:
            self._row.add(EPISODES)
            self._row.add(RETURNS, y)


class StepCounts(StepReports):
    """Counts the steps of a worker in its ``row``; it waits for room until it is asked to stop."""

    def __init__(self, metrics: Metrics, row: WorkerRow, stop: StopRequest) -> None:
        super().__init__(metrics)
        self._row = row
        self._stop = stop

    def goes_on(self) -> bool:
        """See WriterObserver: a worker that waits for a replay that is full does not hang."""
        return goes_on(self._row, self._stop)

    def delivered(self, actions: int) -> None:
        """See WriterObserver."""
        super().delivered(actions)
        self._row.kept.add(DELIVERED, actions)

    def dropped_actions(self, actions: int) -> None:
        """See WriterObserver."""
        self._row.kept.add(DROPPED, actions)


def goes_on(row: WorkerRow, stop: StopRequest) -> bool:
    """Return whether a worker goes on to wait for another server; its ``row`` says that it does."""
    row.note_now(TURN_BEGAN)
    return stop.reason is None


def run_connection_worker(
    settings: WorkerSettings,
    number: int,
    row: WorkerRow,
    connection: FrameConnection,
    peer: str,
    token_digest: bytes | None = None,
) -> int:
    """Serve one connection to its end and return an exit status.

    The worker's ``number`` is unique: its seeds are made of it. Nothing heavy is made before the
    client has spoken. Learning interrupts acting. Events are counted in ``row``.
    """
    spare_memory()
    with closing(StopRequest()) as stop:
        make_agents = partial(_make_agents, settings, number, row, stop, is_shared=False)
        worker = Worker(settings, make_agents, stop, row=row)
        worker.add(connection, peer, token_digest)
        return _run(worker, settings.failures)


def run_shared_worker(
    settings: WorkerSettings, number: int, row: WorkerRow, channel: socket.socket
) -> int:
    """Serve the connections of ``channel`` and return an exit status.

    The worker's ``number`` is unique: its seeds are made of it. Learning goes on beside acting.
    Events are counted in ``row``.
    """
    keep_memory()
    sys.setswitchinterval(_THREAD_SWITCH_S)
    with closing(StopRequest()) as stop, closing(Inbox(channel)) as inbox:
        make_agents = partial(_make_agents, settings, number, row, stop, is_shared=True)
        return _run(Worker(settings, make_agents, stop, inbox, row), settings.failures)


def _run(worker: Worker, failures: FailureLog) -> int:
    try:
        worker.run()
    except (BridgeError, ConfigurationError) as error:
        _log.error("the worker ends: %s", error)
        _log.debug("the worker ends", exc_info=error)
        return _part(worker, _REFUSED if isinstance(error, TokenRefused) else str(error), error)
    except MemoryError:
        raise
    except Exception as error:  # any exception of an algorithm's own code
        failures.add("the algorithm", error)
        return _part(worker, f"the algorithm failed: {in_words(error)}", error)
    finally:
        _close(worker)
    return 0


def _part(worker: Worker, reason: str, error: Exception) -> int:
    """Close all connections because of ``error`` and return the exit status for it."""
    match error:
        case ParameterServerAway() | InferenceAway():
            code, status = ErrorCode.SERVER, PARAMETER_SERVER_IS_AWAY
        case TokenRefused():
            code, status = ErrorCode.SERVER, TOKEN_IS_REFUSED
        case ConfigurationError():
            code, status = ErrorCode.ALGORITHM, CONFIGURATION_IS_WRONG
        case _:
            code, status = ErrorCode.ALGORITHM, ALGORITHM_HAS_FAILED
    worker.part_from_all(code, reason)
    return status


def _close(worker: Worker) -> None:
    """Close ``worker``; exceptions here must not hide why the worker ends."""
    try:
        worker.close()
    except Exception:
        _log.exception("the worker could not be closed in order")


def _make_agents(
    settings: WorkerSettings, number: int, row: WorkerRow, stop: StopRequest, is_shared: bool
) -> Agents:
    stub = settings.stub(EpisodeCount(row))

    def make_writer() -> SpreadWriter:
        spec, counts = (
            settings.algorithm.replay_spec(settings.config),
            StepCounts(stub.metrics(), row, stop),
        )
        drops, way = settings.drops_experience, settings.spread
        return writer_to(settings.deliver_to, spec, counts, number, drops, way)

    try:
        return agents_of(settings, stub, number, make_writer, is_shared, lambda: goes_on(row, stop))
    except BaseException:
        stub.close()
        raise


def agents_of(
    settings: WorkerSettings,
    stub: ParameterLink,
    number: int,
    make_writer: Callable[[], Any],
    is_shared: bool,
    goes_on: Callable[[], bool] = lambda: True,
    deterministic: bool = False,
) -> Agents:
    """Return the agents of worker ``number``, with their way to the parameter server.

    ``make_writer`` makes the sink of experience, for an algorithm that has a learner. Where many
    connections share the worker, it learns in the background. Agents of a checkpoint that is
    exploited learn nothing. Where inference servers choose, the worker waits for these while
    ``goes_on``. ``deterministic`` agents choose without noise.
    """
    algorithm, config, exploitation = settings.algorithm, settings.config, settings.exploitation
    seed, owner = first_seed(number, Purpose.BATCH_AGENT), None
    if not algorithm.knows_batches:
        agent: BatchAgentBase = _separate_agents(settings, stub, number)
    elif exploitation is not None:
        agent = agent_to_exploit(algorithm, config, stub, seed)
    else:
        more: dict[str, Any] = {}
        if algorithm.has_learner(config):
            more["experience"] = make_writer()
        if settings.inference_servers:
            servers, first = servers_of(settings.inference_servers), number + (number >> 32)
            more["inference"] = InferenceClient(servers, first, goes_on=goes_on)
        if deterministic:
            more["deterministic"] = True
        agent = algorithm.make_batch_agent(config, stub, seed, is_shared, **more)
    if exploitation is not None:
        agent, owner = exploiting(agent, exploitation.evaluation), agent
    if is_shared:
        agent.warm_up(WARMED_ENVIRONMENTS)
    of_environments = first_seed(number, Purpose.ENVIRONMENTS)
    return Agents(agent, stub, algorithm.knows_batches, of_environments, owner)


def _separate_agents(settings: WorkerSettings, stub: ParameterLink, number: int) -> SeparateAgents:
    of_agents = first_seed(number, Purpose.AGENTS)
    return SeparateAgents(
        lambda count: settings.algorithm.make_agent(
            settings.config, stub, seed_after(of_agents, count)
        ),
        settings.failures,
    )
