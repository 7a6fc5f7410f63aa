"""The parameters that actions are chosen with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from relaax.algorithm_base import FloatVector, Values, Version
from relaax.learning.networks.parameters import Parameters


@dataclass(frozen=True)
class Policy:
    """Parameters at a version."""

    version: Version
    parameters: Parameters
    #: The global step when it came.
    global_t: int = 0
    #: What the parameters were made of, where that is kept.
    vector: FloatVector | None = None


class PolicyHolder(Protocol):
    """What says which policy to act with."""

    @property
    def current(self) -> Policy:
        """The policy."""


class CurrentPolicy:
    """The newest policy: a ``VariableSink`` that learners publish to and actors read.

    ``current`` is replaced as a whole, so that another thread may read it at any time. ``unpack``
    makes parameters of a flat vector, once for each version.
    """

    def __init__(self, unpack: Callable[[FloatVector], Parameters], values: Values) -> None:
        if values.vector is None:
            raise RuntimeError("the first values of the parameter server came without their vector")
        self._unpack = unpack
        #: The global step as it was last heard of, which may be a moment ago.
        self.global_t = values.global_t
        self.current = self._policy(values, values.vector)

    def publish(self, values: Values) -> None:
        """Act and learn with ``values`` from now on, unless they are the ones in use.

        Their vector must not be changed after that: tensors may share its memory.
        """
        self.global_t = values.global_t
        if values.vector is not None:
            self.current = self._policy(values, values.vector)

    def _policy(self, values: Values, vector: FloatVector) -> Policy:
        return Policy(values.version, self._unpack(vector), values.global_t, vector)
