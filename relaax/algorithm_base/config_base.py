"""The typed configuration of an algorithm."""

from collections.abc import Mapping
from typing import Any

from relaax.algorithm_base.roles import FloatVector
from relaax.spaces import Space


class ConfigBase:
    """Made once from the YAML's ``algorithm:`` section, at the edge.

    ``__init__`` gets the section without the keys that find the algorithm (``path``, ``name``).
    It raises ValueError with a message that names the key for what it cannot use; pydantic's
    ValidationError is one.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Keep the section as it is."""
        self.config = config

    def observation_space(self) -> Space | None:
        """Return the space of one environment's states (RLX version 2); None if any will do."""
        return None

    def action_space(self) -> Space | None:
        """Return the space of one environment's actions; None if it is not known."""
        return None

    def uses_gpu(self) -> bool:
        """Return whether workers use the GPU; ``--workers auto`` then starts one for all."""
        return False

    def describe_policy(self, vector: FloatVector) -> Any:
        """Return what actions depend on, for the parameters of a checkpoint, float32 [size].

        That is a ``relaax.learning.described_policy.DescribedPolicy``, which ``relaax-export``
        writes into files; None, by default, where it is not known.
        """
        return None

    def rollout_steps(self) -> int:
        """Return how many steps of an environment a worker keeps until it learns from them."""
        return 1
