"""Makes the parts of an algorithm."""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from relaax.algorithm_base.learner import Learner

NetworkT = TypeVar("NetworkT")
PolicyT = TypeVar("PolicyT")
ExperienceT = TypeVar("ExperienceT")
ParametersT = TypeVar("ParametersT")


class Builder(ABC, Generic[NetworkT, PolicyT, ExperienceT, ParametersT]):
    """The one place of an algorithm that reads its configuration; it hands values to parts.

    ``relaax.assembly`` wires the parts, for every algorithm in the same way: in workers the policy,
    with the learner or with the way to it; in the learner's process the learner; in the parameter
    server the parameters; in replay servers the experience. A part is made where it is needed: the
    parameter server, for instance, runs without TensorFlow.
    """

    @abstractmethod
    def network(self) -> NetworkT:
        """Return the network that actors choose with."""

    @abstractmethod
    def policy(self, seed: int) -> PolicyT:
        """Return the parts that choose actions; each worker has another ``seed``."""

    @abstractmethod
    def experience(self) -> ExperienceT:
        """Return the columns of a step, and the tables that learners draw from."""

    @abstractmethod
    def parameters(self) -> ParametersT:
        """Return the parameters at first, and the rule by which they change."""

    @abstractmethod
    def learner(self, home: Any) -> Learner:
        """Return the learner for a worker, or for a process of its own, as ``home`` says."""
