"""The agent of many environments at once."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base.bridge_base import BridgeBase
from relaax.algorithm_base.config_base import ConfigBase
from relaax.steps import IntArray, Steps


class BatchAgentBase(ABC):
    """Chooses actions for whoever asks, with one evaluation of the network for all of them.

    Optional, together with ``Preprocessor``: an algorithm that has both serves many environments
    on one connection in one go, and can be run with ``--inference batched``. Inline, a worker
    makes one for its own connection; batched, the compute process makes one for all workers::

        agent = BatchAgent(config, parameter_server, learns_in_background)
        agent.warm_up(most)
        slots = agent.open(environments)             # a connection has come
        actions = agent.act(steps)                   # some of all environments, by their slots
        agent.close_slots(slots)                     # a connection has gone
        agent.close()
    """

    def __init__(
        self, config: ConfigBase, parameter_server: BridgeBase, learns_in_background: bool
    ) -> None:
        """Fetch the parameters. In the background, learning must not make ``act`` wait."""

    def warm_up(self, environments: int) -> None:
        """Do beforehand what the first calls for up to ``environments`` would have to wait for."""

    @abstractmethod
    def action_type(self) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return dtype and shape of one action."""

    @abstractmethod
    def open(self, environments: int) -> IntArray:
        """Return slots int64 [environments] for environments that have come."""

    @abstractmethod
    def close_slots(self, slots: IntArray) -> None:
        """Forget environments that have gone; their slots may be given to others."""

    @abstractmethod
    def act(self, steps: Steps) -> npt.NDArray[Any]:
        """Take what environments report and return the actions [A, ...] of those that want one.

        ``steps.environments`` are slots, and its arrays hold preprocessed observations. They
        belong to the caller again when this returns.
        """

    @abstractmethod
    def close(self) -> None:
        """Release what the agent holds."""
