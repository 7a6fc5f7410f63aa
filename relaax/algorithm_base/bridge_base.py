"""The transport between workers and the parameter server."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from relaax.metrics import Metrics

FloatVector = npt.NDArray[np.float32]


class Phase(Enum):
    """What the parameter server is doing."""

    TRAINING = "training"
    #: The training is over; values are served on.
    SERVING = "serving"
    #: The training is over; the parameter server is about to exit.
    CLOSING = "closing"


@dataclass(frozen=True)
class Version:
    """Which values these are: a count of applied updates within one run of the parameter server."""

    number: int
    #: Random for each start of the parameter server, so that a restart never repeats a version.
    incarnation: int = 0


@dataclass(frozen=True)
class Values:
    """The global parameters at a version."""

    version: Version
    global_t: int
    #: float32 [size]; None means that the caller holds this version already.
    vector: FloatVector | None


class BridgeBase(ABC):
    """What a worker asks of the parameter server.

    The same interface stands at both ends: the worker calls a stub, and the call arrives at the
    object that ``ParameterServerBase.bridge()`` returns. There, many threads call it at once.
    """

    @abstractmethod
    def increment_global_t(self, steps: int = 1) -> int:
        """Add environment steps to the global step and return it."""

    @abstractmethod
    def apply_gradients(self, gradients: FloatVector, computed_with: Version | None = None) -> None:
        """Apply one float32 vector, computed with the values of ``computed_with``."""

    @abstractmethod
    def get_values(self, known: Version | None = None) -> Values:
        """Return the values; their vector may be None when ``known`` is current."""

    @abstractmethod
    def metrics(self) -> Metrics:
        """Return where scalars go."""

    def synchronize(
        self, gradients: FloatVector, steps: int, computed_with: Version | None = None
    ) -> Values:
        """Apply gradients, count their steps and return newer values: one call where it can be."""
        self.apply_gradients(gradients, computed_with)
        self.increment_global_t(steps)
        return self.get_values(computed_with)

    def phase(self) -> Phase:
        """Return whether the training goes on."""
        return Phase.TRAINING

    def close(self) -> None:
        """Release the transport."""


class RunningParameterServer(Protocol):
    """A bridge that listens."""

    def set_phase(self, phase: Phase) -> None:
        """Say to every caller from now on what the parameter server is doing."""

    def stop(self, grace_s: float) -> None:
        """Refuse new calls, give running ones ``grace_s`` seconds and close."""


class BridgeControlBase(ABC):
    """Makes both ends of a bridge."""

    @abstractmethod
    def parameter_server_stub(self, parameter_server_url: str) -> BridgeBase:
        """Return the worker's end for a parameter server at ``host:port``."""

    @abstractmethod
    def start_parameter_server(self, address: str, service: BridgeBase) -> RunningParameterServer:
        """Listen at ``host:port`` and hand calls to ``service``; OSError if the port is in use."""
