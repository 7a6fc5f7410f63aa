"""The worker's inheritance from its RLX server."""

import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.random import SeedSequence  # before the fork: workers share the module

from relaax.algorithm_base import ConfigBase, Evaluation, Metrics, ParameterLink
from relaax.configuration.algorithm_loader import Algorithm
from relaax.configuration.announced_spaces import Doubts
from relaax.protocol import FrameConnection
from relaax.replay.client.spread import Spread
from relaax.server.exploitation import Trained
from relaax.server.rlx_server.entrance import Guard
from relaax.server.rlx_server.limits import ClientLimits, message_limit
from relaax.telemetry.throttled_log import FailureLog

#: How many seeds there are.
SEEDS = 2**32

_log = logging.getLogger(__name__)


class Purpose(IntEnum):
    """The use of a worker's seeds: an agent and its environment have different ones."""

    BATCH_AGENT = 1
    AGENTS = 2
    ENVIRONMENTS = 3


def first_seed(worker: int, purpose: Purpose) -> int:
    """Return the first seed for ``purpose``, from 0 to ``SEEDS`` - 1.

    ``worker`` is at least 0, and may be larger than a seed. Two workers may have the same seed by
    chance: of a thousand workers, two have in one of 9000 cases.
    """
    mixed = SeedSequence([worker, purpose]).generate_state(1, np.uint32)
    return int(mixed[0])


def seed_after(first: int, number: int) -> int:
    """Return the seed that comes ``number`` after the first one; after the largest comes 0."""
    return (first + number) % SEEDS


@dataclass(frozen=True)
class Exploitation:
    """The served policy without learning, and how its actions are chosen."""

    trained: Trained
    evaluation: Evaluation


@dataclass(frozen=True)
class WorkerSettings:
    """The algorithm, the address of its parameter server, and the limits of connections."""

    algorithm: Algorithm
    config: ConfigBase
    parameter_server: str
    #: After so many seconds a connection is closed at the next end of an episode; None keeps it.
    timeout_s: float | None
    #: Makes the message connection of an accepted socket, and owns the socket from then on.
    open_connection: Callable[[socket.socket], FrameConnection]
    #: None: as observations need.
    max_frame_bytes: int | None
    max_environments: int
    #: The conditions for connections, and the limits of their clients.
    guard: Guard = field(default_factory=lambda: Guard(None, hello_timeout_s=10.0))
    limits: ClientLimits = field(default_factory=ClientLimits)
    #: Where experience is delivered, for an algorithm that has a learner.
    deliver_to: Sequence[str] = ()
    #: Whether steps that are not taken at once are dropped.
    drops_experience: bool = False
    #: Where steps go of several servers.
    spread: Spread = "environment"
    #: Addresses of inference servers, which choose for the workers, or one name of them all; empty
    #: where workers have the policy.
    inference_servers: Sequence[str] = ()
    #: How long a parameter server may be away that has answered once.
    give_up_s: float = 3600.0
    #: The algorithm's name in messages.
    algorithm_name: str = "of this server"
    #: Exceptions of the algorithm.
    failures: FailureLog = field(default_factory=lambda: FailureLog(_log))
    #: Warnings about announcements of clients: once, by all workers of a server together.
    doubts: Doubts = field(default_factory=lambda: Doubts(_log))
    #: None where workers learn, and a parameter server has the values.
    exploitation: Exploitation | None = None
    #: The training that this server belongs to, if that is known.
    run: str | None = None

    def most_bytes(self, environments: int = 1) -> int:
        """Return how large a message may be about so many environments of a connection."""
        if self.max_frame_bytes is not None:
            return self.max_frame_bytes
        return message_limit(self.config.observation_space(), environments)

    def stub(self, metrics: Metrics | None = None) -> ParameterLink:
        """Return a stub for the parameter server; only after the fork, since gRPC has threads.

        Where a checkpoint is exploited, it has those values, and scalars go to ``metrics``.
        """
        if self.exploitation is not None:
            return self.exploitation.trained.bridge(metrics)
        return self.algorithm.BridgeControl().parameter_server_stub(self.parameter_server)
