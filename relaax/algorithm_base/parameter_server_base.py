"""The owner of the global parameters."""

from abc import ABC, abstractmethod
from typing import Protocol

from relaax.algorithm_base.bridge_base import BridgeBase
from relaax.algorithm_base.checkpoint import Checkpoint, Saver
from relaax.algorithm_base.config_base import ConfigBase
from relaax.algorithm_base.roles import FloatVector
from relaax.errors import ConfigurationError
from relaax.processes.shard import Shard
from relaax.telemetry.metrics import Metrics


class Slice(Protocol):
    """A slice [end - begin] of the parameters, and what its optimiser remembers of it.

    All methods may be called by many threads at once.
    """

    #: Its place in the whole vector [size].
    begin: int
    end: int
    size: int

    def require_fitting(self, gradient: FloatVector) -> None:
        """Raise ValueError unless ``gradient`` is one of this slice."""

    def apply(self, gradient: FloatVector, steps: int) -> tuple[int, int] | None:
        """Apply a gradient, and count the steps behind it.

        Return the number of updates with this one, and the global step before it; None where the
        training is over, and nothing was applied.
        """

    def follow(self, gradient: FloatVector, global_t: int, steps: int) -> int:
        """Apply a gradient as ``apply`` has at global step ``global_t``; return the number."""

    def read(self) -> tuple[FloatVector, int, int]:
        """Return the values, read-only, the number of updates and the global step, which agree."""

    def begin_with(self, vector: FloatVector, number: int, global_t: int) -> None:
        """Take ``vector`` for the values, and let the optimiser begin anew."""

    def checkpoint(self) -> Checkpoint:
        """Return what is saved of it."""

    def restore(self, checkpoint: Checkpoint, location: str) -> None:
        """Go on from what was saved in ``location``; CheckpointMismatch for another shard's."""


class ParameterServerBase(ABC):
    """Holds an algorithm's global state.

    The parameter-server process drives it::

        parameter_server = ParameterServer(config, saver, metrics)
        parameter_server.restore_latest_checkpoint()
        serve parameter_server.bridge() to the workers
        until parameter_server.training_is_over(), a goal is reached, or a signal arrives:
            every second or so: parameter_server.save_published()
            every checkpoint interval: parameter_server.save_checkpoint()
        parameter_server.stop_training()
        parameter_server.save_checkpoint()
        parameter_server.close()

    Bridge calls arrive on other threads meanwhile.
    """

    def __init__(self, config: ConfigBase, saver: Saver, metrics: Metrics) -> None:
        """Keep the configuration, the place of checkpoints and of metrics.

        ``self.metrics().scalar(...)`` and ``self.metrics.scalar(...)`` are the same.
        """
        self.config = config
        self.saver = saver
        self.metrics = metrics

    @abstractmethod
    def restore_latest_checkpoint(self) -> None:
        """Restore the latest checkpoint, if any; CheckpointMismatch if it is another network's."""

    @abstractmethod
    def save_checkpoint(self) -> None:
        """Save the state through the saver."""

    def save_published(self) -> None:
        """Save what a learner has published since anything was saved, until the next checkpoint.

        By default nothing is published. It must not take long where there is nothing new.
        """

    @abstractmethod
    def global_t(self) -> int:
        """Return the environment steps that all agents have taken."""

    @abstractmethod
    def bridge(self) -> BridgeBase:
        """Return the object that answers workers."""

    def updates(self) -> int | None:
        """Return how often the parameters have been changed; None, by default, if not counted."""
        return None

    def checkpoint_location(self) -> str:
        """Say in words for people where checkpoints go."""
        return self.saver.location()

    def training_is_over(self) -> bool:
        """Return whether the required number of steps is done; by default it never is."""
        return False

    def max_global_step(self) -> float | None:
        """Return the global step at which the training is over; None, by default, if none is known.

        Progress is shown against it.
        """
        return None

    def divide(self, shard: Shard) -> Slice:
        """Hold no more than the slice of ``shard`` from now on, and return that.

        Called once, before anything else. ConfigurationError, by default, where that is not
        possible.
        """
        raise ConfigurationError("--shard: the parameter server of this algorithm has no shards")

    def stop_training(self) -> None:
        """Change nothing from now on, so that what is saved next is what was reached.

        The training is over, or this process is about to end. What still comes is ignored.
        """

    def close(self) -> None:
        """Release what the parameter server holds."""
