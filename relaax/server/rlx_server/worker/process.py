"""What runs in the process of a worker."""

import logging
import socket
import sys
from contextlib import closing
from functools import partial

from relaax.algorithm_base import BridgeBase
from relaax.allocator import keep_memory, spare_memory
from relaax.errors import BridgeError, ConfigurationError, ParameterServerAway
from relaax.failure_log import FailureLog, in_words
from relaax.protocol.binary import ErrorCode
from relaax.server.rlx_server.tally import WorkerRow
from relaax.server.rlx_server.worker.agents import Agents, SeparateAgents
from relaax.server.rlx_server.worker.inbox import Inbox
from relaax.server.rlx_server.worker.loop import Worker
from relaax.server.rlx_server.worker.seeds import Purpose, first_seed, seed_after
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.server.rlx_server.worker.stopping import StopRequest

_log = logging.getLogger(__name__)

#: Exit status of a worker that waited too long for its parameter server.
PARAMETER_SERVER_IS_AWAY = 1

#: Exit status of a worker when starting it again would not help.
CONFIGURATION_IS_WRONG = 2

#: Exit status of a worker whose algorithm raised an exception, here or at the parameter server. If
#: that happened before it served its first client, starting it again would not help either.
ALGORITHM_HAS_FAILED = 3

#: The network is made ready for batches of up to so many environments before any client comes.
WARMED_ENVIRONMENTS = 128

#: A thread that learns must not keep the one that acts waiting: Python's default is 5 ms.
_THREAD_SWITCH_S = 0.0002


def run_connection_worker(
    settings: WorkerSettings, number: int, row: WorkerRow, connection: socket.socket, peer: str
) -> int:
    """Serve one connection to its end and return an exit status.

    The worker's ``number`` is no other worker's: its seeds are made of it. Nothing
    heavy is made before the client has spoken. Learning interrupts acting. What it does is counted
    in ``row``.
    """
    spare_memory()
    with closing(StopRequest()) as stop:
        make_agents = partial(_make_agents, settings, number, stop, learns_in_background=False)
        worker = Worker(settings, make_agents, stop, row=row)
        worker.accept(connection, peer)
        return _run(worker, settings.failures)


def run_shared_worker(
    settings: WorkerSettings, number: int, row: WorkerRow, channel: socket.socket
) -> int:
    """Serve the connections that ``channel`` brings and return an exit status.

    The worker's ``number`` is no other worker's: its seeds are made of it. Learning
    goes on beside acting. What it does is counted in ``row``.
    """
    keep_memory()
    sys.setswitchinterval(_THREAD_SWITCH_S)
    with closing(StopRequest()) as stop, closing(Inbox(channel)) as inbox:
        make_agents = partial(_make_agents, settings, number, stop, learns_in_background=True)
        return _run(Worker(settings, make_agents, stop, inbox, row), settings.failures)


def _run(worker: Worker, failures: FailureLog) -> int:
    try:
        worker.run()
    except (BridgeError, ConfigurationError) as error:
        _log.error("the worker ends: %s", error)
        _log.debug("the worker ends", exc_info=error)
        return _part(worker, str(error), error)
    except MemoryError:
        raise
    except Exception as error:  # whatever an algorithm's own code raises
        failures.add("the algorithm", error)
        return _part(worker, f"the algorithm failed: {in_words(error)}", error)
    finally:
        _close(worker)
    return 0


def _part(worker: Worker, reason: str, error: Exception) -> int:
    """Close all connections because of ``error`` and return the exit status for it."""
    match error:
        case ParameterServerAway():
            code, status = ErrorCode.SERVER, PARAMETER_SERVER_IS_AWAY
        case ConfigurationError():
            code, status = ErrorCode.ALGORITHM, CONFIGURATION_IS_WRONG
        case _:
            code, status = ErrorCode.ALGORITHM, ALGORITHM_HAS_FAILED
    worker.part_from_all(code, reason)
    return status


def _close(worker: Worker) -> None:
    """Close ``worker``; what it raises must not hide why the worker ends."""
    try:
        worker.close()
    except Exception:
        _log.exception("the worker could not be closed in order")


def _make_agents(
    settings: WorkerSettings, number: int, stop: StopRequest, learns_in_background: bool
) -> Agents:
    stub = settings.stub()
    try:
        return _agents(settings, stub, number, stop, learns_in_background)
    except BaseException:
        stub.close()
        raise


def _agents(
    settings: WorkerSettings,
    stub: BridgeBase,
    number: int,
    stop: StopRequest,
    learns_in_background: bool,
) -> Agents:
    algorithm, config = settings.algorithm, settings.config
    of_environments = first_seed(number, Purpose.ENVIRONMENTS)
    if algorithm.knows_batches:
        seed = first_seed(number, Purpose.BATCH_AGENT)
        if algorithm.has_learner:
            writer = settings.replay_writer(stub, number, lambda: stop.reason is not None)
            agent = algorithm.make_batch_agent(
                config, stub, seed, learns_in_background, experience=writer
            )
        else:
            agent = algorithm.make_batch_agent(config, stub, seed, learns_in_background)
        if learns_in_background:
            agent.warm_up(WARMED_ENVIRONMENTS)
        return Agents(agent, stub, act_together=True, first_seed=of_environments)
    of_agents = first_seed(number, Purpose.AGENTS)
    separate = SeparateAgents(
        lambda count: algorithm.make_agent(config, stub, seed_after(of_agents, count)),
        settings.failures,
    )
    return Agents(separate, stub, act_together=False, first_seed=of_environments)
