"""What runs in the RLX server's children."""

import logging
import os
import signal
import socket
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import NoReturn

from relaax.algorithm_base import BridgeBase, ConfigBase, InvalidState, Phase
from relaax.allocator import keep_memory, spare_memory
from relaax.errors import BridgeError, ComputeError, ConfigurationError, ProtocolError
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode, Hello, Welcome
from relaax.protocol.framing import FrameConnection
from relaax.server.common.algorithm_loader import Algorithm
from relaax.server.rlx_server.children import COMPUTE_IS_GONE, END_OF_TRAINING, STOP
from relaax.server.rlx_server.compute.link import Link
from relaax.server.rlx_server.compute.process import ComputeLoop
from relaax.server.rlx_server.compute.remote_agents import RemoteAgents
from relaax.server.rlx_server.connection_agents import (
    ConnectionAgents,
    InlineAgents,
    SeparateAgents,
)
from relaax.server.rlx_server.conversation import (
    BinaryConversation,
    Conversation,
    JsonConversation,
)
from relaax.server.rlx_server.worker import Worker
from relaax.spaces import differ, written

_log = logging.getLogger(__name__)

#: Exit status of the watcher when the training is over: the RLX server closes too.
TRAINING_IS_OVER = 10

#: Exit status of the compute process when starting it again would not help: the RLX server too.
CONFIGURATION_IS_WRONG = 2

#: How often the watcher asks.
WATCH_INTERVAL_S = 0.5


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker inherits from its RLX server."""

    algorithm: Algorithm
    config: ConfigBase
    parameter_server: str
    timeout_s: float | None
    max_frame_bytes: int
    max_environments: int

    def stub(self) -> BridgeBase:
        """Return a stub for the parameter server; only after the fork, since gRPC has threads."""
        return self.algorithm.BridgeControl().parameter_server_stub(self.parameter_server)


@dataclass(frozen=True)
class ComputeEnd:
    """A worker's way to the compute process."""

    link: Link
    #: Descriptor of the pipe that tells who waits.
    doorbell: int


def run_worker(
    settings: WorkerSettings,
    worker_number: int,
    connection: socket.socket,
    peer: str,
    compute: ComputeEnd | None,
) -> int:
    """Serve one client to its end and return an exit status.

    Without ``compute`` the network runs here. Nothing heavy is made before the client has spoken.
    """
    settings.config.worker_number = worker_number
    if compute is not None:
        _let_others_finish()
    frames = FrameConnection(connection, max_frame_bytes=settings.max_frame_bytes)
    parting = _Parting(frames, peer)
    for number, code, text in (
        (STOP, ErrorCode.GO_ELSEWHERE, "it stops"),
        (END_OF_TRAINING, ErrorCode.TRAINING_IS_OVER, "the training is over"),
        (COMPUTE_IS_GONE, ErrorCode.SERVER, "the compute process is gone"),
    ):
        parting.leave_at(number, code, text)
    try:
        first = frames.receive()
        if first is None:
            return 0
        parting.can_be_told = binary.is_hello(first)
        conversation = _conversation(settings, first)
        if compute is not None:
            _serve_remotely(settings, conversation, frames, first, compute)
        else:
            _serve_inline(settings, conversation, frames, first)
    except binary.Error as error:
        parting.say(logging.WARNING, ErrorCode(error.code), str(error))
    except InvalidState as error:
        parting.say(logging.WARNING, ErrorCode.MISMATCH, str(error))
    except ProtocolError as error:
        parting.say(logging.WARNING, ErrorCode.PROTOCOL, str(error))
    except (BridgeError, ComputeError, ConfigurationError) as error:
        parting.say(logging.ERROR, ErrorCode.SERVER, str(error))
    except OSError as error:
        _log.info("lost the connection from %s: %s", peer, error)
    finally:
        frames.close()
    return 0


def run_compute(
    settings: WorkerSettings, worker_number: int, introductions: socket.socket, doorbell: int
) -> int:
    """Run the network for all workers until the RLX server ends."""
    settings.config.worker_number = worker_number
    keep_memory()
    _let_others_finish()
    stub = settings.stub()
    try:
        agent = settings.algorithm.BatchAgent(settings.config, stub, learns_in_background=True)
        with closing(agent):
            ComputeLoop(agent, stub.metrics(), introductions, doorbell).run()
    except ConfigurationError as error:
        _log.error("%s", error)
        return CONFIGURATION_IS_WRONG
    except BridgeError as error:
        _log.error("the compute process ends: %s", error)
        return 1
    finally:
        stub.close()
    return 0


def _let_others_finish() -> None:
    """Do not interrupt whoever runs when this process is woken.

    A worker and the compute process wake each other once a step; when each wake-up is an
    interruption too, batches stay small: 13,000 steps/s instead of 20,000 with 32 connections of
    one environment (docs/performance.md). The share of the processor stays the same.
    """
    if hasattr(os, "SCHED_BATCH"):
        with suppress(PermissionError):  # where a container forbids it
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def watch_parameter_server(settings: WorkerSettings) -> int:
    """Return when the parameter server closes after the training.

    A process of its own, so that the RLX server itself never starts gRPC.
    """
    stub = settings.stub()
    while True:
        try:
            if stub.phase() is Phase.CLOSING:
                stub.close()
                return TRAINING_IS_OVER
        except BridgeError as error:
            _log.warning("%s", error)
        time.sleep(WATCH_INTERVAL_S)


class _Parting:
    """Says why a connection is closed: to the log, and to a client that can be told."""

    def __init__(self, frames: FrameConnection, peer: str) -> None:
        #: Whether the client has said hello: version 1 has no word for an error.
        self.can_be_told = False
        self._frames = frames
        self._peer = peer

    def leave_at(self, number: signal.Signals, code: ErrorCode, text: str) -> None:
        """Leave when a signal comes."""
        signal.signal(number, lambda _, frame: self.leave(code, text))

    def leave(self, code: ErrorCode, text: str) -> NoReturn:
        """Tell the client, if that takes no time, and end the process at once.

        Called by a signal, in the middle of anything.
        """
        if self.can_be_told:
            with suppress(OSError):
                self._frames.send_now(binary.encode_error(code, text))
        os._exit(0)

    def say(self, level: int, code: ErrorCode, text: str) -> None:
        """Log ``text`` and send it."""
        _log.log(level, "closing the connection from %s: %s", self._peer, text)
        if not self.can_be_told:
            return
        try:
            self._frames.send(binary.encode_error(code, text))
        except OSError as error:
            _log.info("%s could not be told: %s", self._peer, error)


def _conversation(settings: WorkerSettings, first: bytes) -> Conversation:
    """Return the conversation that ``first`` opens, in version 1 or 2."""
    if not binary.is_hello(first):
        return JsonConversation(settings.max_frame_bytes)
    hello = binary.decode_hello(first)
    if hello.environments > settings.max_environments:
        raise InvalidState(
            f"a connection may carry {settings.max_environments} environments (--max-environments "
            f"of the RLX server), this one would carry {hello.environments}"
        )
    return BinaryConversation(hello)


def _serve_remotely(
    settings: WorkerSettings,
    conversation: Conversation,
    frames: FrameConnection,
    first: bytes,
    compute: ComputeEnd,
) -> None:
    environments = conversation.environments
    preprocessor = settings.algorithm.Preprocessor(settings.config, environments)
    agents = RemoteAgents(preprocessor, compute.link, compute.doorbell, environments)
    _serve(settings, conversation, frames, first, agents)


def _serve_inline(
    settings: WorkerSettings, conversation: Conversation, frames: FrameConnection, first: bytes
) -> None:
    spare_memory()
    stub = settings.stub()
    try:
        _serve(settings, conversation, frames, first, _inline_agents(settings, stub, conversation))
    finally:
        stub.close()


def _inline_agents(
    settings: WorkerSettings, stub: BridgeBase, conversation: Conversation
) -> ConnectionAgents:
    algorithm, config, environments = (
        settings.algorithm, settings.config, conversation.environments,
    )  # fmt: skip
    if not algorithm.knows_batches:
        return SeparateAgents([algorithm.Agent(config, stub) for _ in range(environments)])
    return InlineAgents(
        algorithm.Preprocessor(config, environments),
        algorithm.BatchAgent(config, stub, learns_in_background=False),
        environments,
        stub.metrics(),
    )


def _serve(
    settings: WorkerSettings,
    conversation: Conversation,
    frames: FrameConnection,
    first: bytes,
    agents: ConnectionAgents,
) -> None:
    try:
        worker = Worker(conversation, agents, frames, settings.timeout_s)
        if isinstance(conversation, BinaryConversation):
            frames.send(binary.encode_welcome(_welcome(settings.config, conversation.hello)))
            worker.run()
        else:
            worker.run(first)
    finally:
        agents.close()


def _welcome(config: ConfigBase, hello: Hello) -> Welcome:
    """Return the welcome to ``hello``; InvalidState when its spaces do not fit."""
    expected = Welcome(config.observation_space(), config.action_space())
    for what, told, wanted in (
        ("observations", hello.observation_space, expected.observation_space),
        ("actions", hello.action_space, expected.action_space),
    ):
        if differ(told, wanted):
            name = f" of {hello.environment}" if hello.environment else ""
            raise InvalidState(
                f"the {what}{name} are {written(told)}, the algorithm section of the server's "
                f"configuration asks for {written(wanted)}"
            )
    return expected
