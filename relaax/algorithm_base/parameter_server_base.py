"""The owner of the global parameters."""

from abc import ABC, abstractmethod
from typing import Protocol

from relaax.algorithm_base.bridge_base import ParameterLink
from relaax.algorithm_base.checkpoint import Saver
from relaax.algorithm_base.config_base import ConfigBase
from relaax.algorithm_base.roles import FloatVector, Gradient
from relaax.errors import ConfigurationError
from relaax.processes.shard import Shard
from relaax.telemetry.metrics import Metrics


class Slice(Protocol):
    """A slice [end - begin] of a vector [size], which a parameter server owns.

    All methods may be called by many threads at once.
    """

    begin: int
    end: int
    size: int

    def apply(self, gradient: Gradient, at: int) -> None:
        """Apply a gradient as at global step ``at``, and count the steps behind it.

        ValueError for another size than the slice's, and for a gradient that is not finite.
        """

    def begin_with(self, vector: FloatVector) -> None:
        """Take ``vector`` [end - begin] for the initial values."""

    def follow(self, counted: int) -> None:
        """Go back to the global step that the first shard has ``counted``, if it has gone back.

        That is where it is behind the step of this slice at the last call, half a second ago: it
        was killed, and has restored a checkpoint.
        """


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

    Calls of the bridge arrive on other threads.
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
        """Save publications that are newer than all that is saved, until the next checkpoint.

        By default nothing is published. It must not take long where there is nothing new.
        """

    @abstractmethod
    def global_t(self) -> int:
        """Return the environment steps that all agents have taken."""

    @abstractmethod
    def bridge(self) -> ParameterLink:
        """Return the object that answers workers."""

    def updates(self) -> int | None:
        """Return the number of changes of the parameters; None, by default, if not counted."""
        return None

    def checkpoint_location(self) -> str:
        """Say in words for people where checkpoints go."""
        return self.saver.location()

    def training_is_over(self) -> bool:
        """Return whether the required number of steps is done; by default it never is."""
        return False

    def max_global_step(self) -> float | None:
        """Return the global step at which the training is over; None, by default, if not known.

        Progress is shown against it.
        """
        return None

    def divide(self, shard: Shard) -> Slice:
        """Own no more than the slice of ``shard`` from now on, and return it.

        Called once, before anything else; checkpoints are parts then. ConfigurationError, by
        default, where that is not possible.
        """
        raise ConfigurationError("--shard: the parameter server of this algorithm has no shards")

    def stop_training(self) -> None:
        """Change nothing from now on, so that the next checkpoint is the result of the training.

        The training is over, or this process is about to end. Later updates are ignored.
        """

    def close(self) -> None:
        """Release the parameter server's resources."""
