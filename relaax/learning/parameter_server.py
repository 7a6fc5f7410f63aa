"""The owner of DA3C's global parameters."""

from relaax.algorithm_base import (
    BridgeBase,
    Checkpoint,
    Metrics,
    ParameterServerBase,
    Saver,
)
from relaax.algorithm_base.checkpoint import require_same_fingerprint, require_same_shapes
from relaax.learning.optimizers import RMSProp, linear_anneal
from relaax.learning.optimizers.rmsprop import RMSPropSettings
from relaax.learning.parameter_store import ParameterStore, Snapshot

from ..config import Config
from ..initialization import initial_parameters
from .service import ParameterServerService


class ParameterServer(ParameterServerBase):
    """Applies the workers' gradients with a shared, linearly annealed RMSProp."""

    def __init__(self, config: Config, saver: Saver, metrics: Metrics) -> None:
        super().__init__(config, saver, metrics)
        settings = config.settings
        self._max_global_step = settings.max_global_step
        self._network = config.network
        initial = initial_parameters(
            self._network.manifest(), settings.initialization, settings.seed
        )
        self._store = ParameterStore(
            parameters=initial,
            optimizer=RMSProp(
                initial.size, RMSPropSettings(settings.RMSProp.decay, settings.RMSProp.epsilon)
            ),
            learning_rate=lambda global_t: linear_anneal(
                settings.initial_learning_rate, global_t, settings.max_global_step
            ),
        )
        self._service = ParameterServerService(self._store, metrics)

    def restore_latest_checkpoint(self) -> None:
        """Restore the latest checkpoint, if any; CheckpointMismatch if it is another network's."""
        checkpoint = self.saver.restore_latest()
        if checkpoint is None:
            return
        require_same_fingerprint(
            checkpoint.fingerprint, self._network.fingerprint(), self.saver.location()
        )
        require_same_shapes(checkpoint, self._checkpoint().tensors)
        self._store.restore(
            Snapshot(
                parameters=checkpoint.tensors["parameters"],
                mean_square=checkpoint.tensors["rmsprop/mean_square"],
                global_t=checkpoint.global_t,
                version=checkpoint.version,
            )
        )

    def save_checkpoint(self) -> None:
        """Save parameters, optimiser slots, global step and version."""
        self.saver.save(self._checkpoint())

    def global_t(self) -> int:
        """Return the environment steps that all agents have taken."""
        return self._store.global_t

    def bridge(self) -> BridgeBase:
        """Return what answers the workers."""
        return self._service

    def training_is_over(self) -> bool:
        """Return whether ``max_global_step`` is reached."""
        return self._store.global_t >= self._max_global_step

    def stop_training(self) -> None:
        """Take no more gradients."""
        self._store.freeze()

    def _checkpoint(self) -> Checkpoint:
        snapshot = self._store.snapshot()
        return Checkpoint(
            tensors={
                "parameters": snapshot.parameters,
                "rmsprop/mean_square": snapshot.mean_square,
            },
            global_t=snapshot.global_t,
            version=snapshot.version,
            fingerprint=self._network.fingerprint(),
        )
