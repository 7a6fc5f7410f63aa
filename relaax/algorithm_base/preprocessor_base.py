"""What happens to states before the network sees them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base.config_base import ConfigBase


class PreprocessorBase(ABC):
    """Turns the states of one connection's environments into the network's observations.

    Optional, together with ``BatchAgent``. It runs in the worker, in either inference mode, and
    must not import what is heavy: in batched mode a worker holds nothing but this.
    """

    def __init__(self, config: ConfigBase, environments: int) -> None:
        """Prepare for environments 0 to ``environments - 1``."""
        self.config = config
        self.environments = environments

    @abstractmethod
    def observe(
        self,
        environments: npt.NDArray[np.int64],
        starts: npt.NDArray[np.bool_],
        states: Sequence[Any] | npt.NDArray[Any],
    ) -> npt.NDArray[Any]:
        """Return the observations [A, ...] after new states of A ``environments``.

        ``starts`` says which of them are the first of an episode. All observations of one
        connection have one shape and dtype. InvalidState for a state that cannot be used.
        """
