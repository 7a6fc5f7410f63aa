"""Metrics for Weights & Biases, beside the event files."""

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from relaax.errors import ConfigurationError
from relaax.server.parameter_server.metrics.event_file import Scalar
from relaax.server.parameter_server.metrics.queued_metrics import QueuedMetrics

_log = logging.getLogger(__name__)

#: The name that Weights & Biases has for the horizontal axis.
GLOBAL_STEP = "global_step"

#: How long the end of a training waits for what is not uploaded yet.
CLOSE_S = 30.0

_INSTALL = "it needs the package wandb, which the extra has: pip install 'relaax[wandb]'"
_LOG_IN = (
    "Weights & Biases knows no API key: run `wandb login`, set WANDB_API_KEY, or set "
    "WANDB_MODE=offline, which writes a directory that `wandb sync` uploads later"
)


class WandbLog:
    """Hands scalars to a run; those of one step together.

    A failure is logged once, and values are lost from then on.
    """

    def __init__(self, run: Any) -> None:
        self._run = run
        self._step = 0
        self._values: dict[str, float] = {}
        self._has_failed = False

    def write(self, scalar: Scalar) -> None:
        """Take a value."""
        if scalar.step != self._step or scalar.tag in self._values:
            self.flush()
        self._step = scalar.step
        self._values[scalar.tag] = scalar.y

    def flush(self) -> None:
        """Hand over what is left."""
        values, self._values = self._values, {}
        if values:
            self._try(lambda: self._run.log({**values, GLOBAL_STEP: self._step}))

    def close(self) -> None:
        """End the run."""
        self.flush()
        self._try(self._run.finish)

    def _try(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception:  # it is better to train without metrics than not to train
            if not self._has_failed:
                _log.exception("cannot hand metrics to Weights & Biases")
            self._has_failed = True


class WandbWriter(QueuedMetrics):
    """A run of ``project`` at Weights & Biases; see ``QueuedMetrics``.

    Nothing is sent where WANDB_MODE is ``offline``. Files are written below ``directory``, the
    working directory by default. ``parameters`` are the run's configuration. Of this machine the
    name is told, and neither its load nor its code.

    ConfigurationError if the package is not installed, and if there is no API key.
    """

    def __init__(
        self,
        project: str,
        run_name: str,
        global_t: Callable[[], int],
        parameters: Mapping[str, Any],
        directory: Path | None = None,
    ) -> None:
        run = _run(project, run_name, parameters, directory)
        super().__init__(WandbLog(run), global_t, "Weights & Biases is too slow")

    def close(self, deadline_s: float = CLOSE_S) -> None:
        """Hand over what is queued, and end the run, within ``deadline_s`` seconds."""
        super().close(deadline_s)


def _run(project: str, name: str, parameters: Mapping[str, Any], directory: Path | None) -> Any:
    # Its reports of its own crashes would be network calls in offline mode, too.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    try:
        import wandb  # of an extra: only where it is asked for
    except ImportError as error:
        raise ConfigurationError(f"--wandb-project: {_INSTALL} ({error})") from error

    try:
        settings = wandb.Settings(
            silent=True,
            console="off",
            disable_git=True,
            save_code=False,
            x_disable_stats=True,
            x_disable_meta=True,
        )
        if wandb.setup(settings).settings.mode == "online" and not wandb.login(prompt=False):
            raise ConfigurationError(f"--wandb-project: {_LOG_IN}")
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        run = wandb.init(
            project=project,
            name=name,
            group=name,  # a training that goes on after a restart is another run of its group
            config=dict(parameters),
            dir=directory,
            settings=settings,
        )
    except (wandb.errors.Error, OSError, ValueError) as error:
        raise ConfigurationError(f"--wandb-project: {error}") from error
    with suppress(wandb.errors.Error):
        run.define_metric(GLOBAL_STEP)
        run.define_metric("*", step_metric=GLOBAL_STEP)
    return run
