"""Several learners, each in a process of its own, on one set of parameters."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import FloatVector
from relaax.errors import BridgeError
from relaax.learning.filters import ParameterSource

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]

_log = logging.getLogger(__name__)


class GradientUpdate(Protocol):
    """An update whose gradients may go elsewhere."""

    @property
    def policy(self) -> FloatVector:
        """The parameters that actors act with, float32 [size]."""

    def gradient(self, batch: Any) -> tuple[FloatVector, FloatArray, Mapping[str, float]]:
        """Return the gradients of all that is learnt, joined [sizes], errors [B] and terms."""

    def load(self, joined: FloatVector, number: int) -> None:
        """Take all that is learnt [sizes] after the update of this number; targets follow."""

    def begin(self, joined: FloatVector) -> None:
        """Take all that is learnt [sizes] before the first update; targets are copies."""

    def state(self) -> dict[str, Array]:
        """Return all variables by name."""

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``, which may hold more."""


class SharedUpdate:
    """Sends the gradients of each batch to the parameter server, and takes what they made.

    A gradient that the parameter server does not take is lost, with a warning.
    """

    def __init__(
        self, update: GradientUpdate, parameter_server: ParameterSource, updates: int
    ) -> None:
        self._update = update
        self._parameter_server = parameter_server
        values = parameter_server.get()
        if values.vector is None:
            raise RuntimeError("the first values of the parameter server came without their vector")
        if updates:
            update.load(values.vector, updates)
        else:
            update.begin(values.vector)
        self._version = values.version

    @property
    def policy(self) -> FloatVector:
        """What actors act with, float32 [size]."""
        return self._update.policy

    def __call__(self, batch: Any, number: int) -> tuple[FloatArray, Mapping[str, float]] | None:
        """Make the update of this number; return errors float32 [B] and terms, None if it is lost.

        A lost one does not count: targets follow others.
        """
        gradient, errors, terms = self._update.gradient(batch)
        try:
            values = self._parameter_server.apply(gradient, 0, self._version)
        except BridgeError as error:
            _log.warning("an update is lost: %s", error)
            return None
        self._version = values.version
        if values.vector is None:
            return None
        self._update.load(values.vector, number)
        return errors, terms

    def state(self) -> dict[str, Array]:
        """Return all variables by name."""
        return self._update.state()

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``."""
        self._update.restore(state)
