"""What runs in the process of a worker."""

import logging
import socket
import sys
from contextlib import closing
from functools import partial

from relaax.algorithm_base import BridgeBase
from relaax.allocator import keep_memory, spare_memory
from relaax.errors import BridgeError, ConfigurationError
from relaax.protocol.binary import ErrorCode
from relaax.server.rlx_server.worker.agents import Agents, BatchAgents, SeparateAgents
from relaax.server.rlx_server.worker.inbox import Inbox
from relaax.server.rlx_server.worker.loop import Worker
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.server.rlx_server.worker.stopping import StopRequest

_log = logging.getLogger(__name__)

#: Exit status of a worker when starting it again would not help.
CONFIGURATION_IS_WRONG = 2

#: The network is made ready for batches of up to so many environments before any client comes.
WARMED_ENVIRONMENTS = 128

#: So far apart are the seeds of two workers that make an agent for each environment.
MOST_AGENTS = 2**32

#: A thread that learns must not keep the one that acts waiting: Python's default is 5 ms.
_THREAD_SWITCH_S = 0.0002


def run_connection_worker(
    settings: WorkerSettings, seed: int, connection: socket.socket, peer: str
) -> int:
    """Serve one connection to its end and return an exit status.

    Nothing heavy is made before the client has spoken. Learning interrupts acting.
    """
    spare_memory()
    make_agents = partial(_make_agents, settings, seed, learns_in_background=False)
    with closing(StopRequest()) as stop:
        worker = Worker(settings, make_agents, stop)
        worker.add(settings.open(connection), peer)
        _run(worker)
    return 0


def run_shared_worker(settings: WorkerSettings, seed: int, channel: socket.socket) -> int:
    """Serve the connections that ``channel`` brings and return an exit status.

    Learning goes on beside acting.
    """
    keep_memory()
    sys.setswitchinterval(_THREAD_SWITCH_S)
    make_agents = partial(_make_agents, settings, seed, learns_in_background=True)
    with closing(StopRequest()) as stop, closing(Inbox(channel)) as inbox:
        return _run(Worker(settings, make_agents, stop, inbox))


def _run(worker: Worker) -> int:
    try:
        worker.run()
    except (BridgeError, ConfigurationError) as error:
        _log.error("the worker ends: %s", error)
        worker.part_from_all(ErrorCode.SERVER, str(error))
        return CONFIGURATION_IS_WRONG if isinstance(error, ConfigurationError) else 1
    finally:
        worker.close()
    return 0


def _make_agents(settings: WorkerSettings, seed: int, learns_in_background: bool) -> Agents:
    stub = settings.stub()
    try:
        return _agents(settings, stub, seed, learns_in_background)
    except BaseException:
        stub.close()
        raise


def _agents(
    settings: WorkerSettings, stub: BridgeBase, seed: int, learns_in_background: bool
) -> Agents:
    algorithm, config = settings.algorithm, settings.config
    if algorithm.knows_batches:
        agent = algorithm.make_batch_agent(config, stub, seed, learns_in_background)
        return BatchAgents(agent, stub, WARMED_ENVIRONMENTS if learns_in_background else 0)
    first_seed = seed * MOST_AGENTS
    return SeparateAgents(
        lambda number: algorithm.make_agent(config, stub, first_seed + number), stub
    )
