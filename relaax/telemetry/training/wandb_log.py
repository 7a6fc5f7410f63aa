"""Metrics for Weights & Biases, beside the event files."""

import logging
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from relaax.checkpoints import BlobStore
from relaax.errors import CheckpointError, ConfigurationError, DamagedCheckpoint
from relaax.telemetry.training.event_file import Scalar
from relaax.telemetry.training.queued_metrics import QueuedMetrics

_log = logging.getLogger(__name__)

#: The name of the file beside the checkpoints that has the run's name, and how far it got.
RECORD = "wandb.json"

#: The name that Weights & Biases has for the horizontal axis.
GLOBAL_STEP = "global_step"

#: How long the end of a training waits for uploads.
CLOSE_S = 30.0

_INSTALL = "it needs the package wandb, which the extra has: pip install 'relaax[wandb]'"
_LOG_IN = (
    "Weights & Biases knows no API key: run `wandb login`, set WANDB_API_KEY, or set "
    "WANDB_MODE=offline, which writes a directory that `wandb sync` uploads later"
)


class _Written(BaseModel):
    """The content of the file."""

    id: str = Field(pattern=r"^[0-9a-z]{4,64}$")
    #: By tag: the highest step that was handed over.
    steps: dict[str, int] = {}


class RunRecord:
    """The run that a training goes on with after a restart, and the last step of each metric.

    Without a ``store``, and if ``is_new``, it is another run. A failed write is a warning.
    """

    def __init__(self, store: BlobStore | None = None, is_new: bool = False) -> None:
        self._store = store
        found = None if store is None or is_new else _read(store)
        #: Whether an earlier start of the training has begun the run.
        self.is_found = found is not None
        self._run = found or _Written(id=secrets.token_hex(8))
        #: The name that Weights & Biases has for the run.
        self.id = self._run.id
        #: By tag, the last step that earlier starts have handed over.
        self._before = dict(self._run.steps)

    def note(self, tag: str, step: int) -> bool:
        """Note a value; return False if an earlier start has handed it over."""
        if step <= self._before.get(tag, -1):
            return False
        self._run.steps[tag] = max(step, self._run.steps.get(tag, step))
        return True

    def save(self) -> None:
        """Write the file."""
        try:
            if self._store is not None:
                self._store.put(RECORD, self._run.model_dump_json().encode())
        except CheckpointError as error:
            _log.warning("the run of Weights & Biases may begin anew after a restart: %s", error)


def _read(store: BlobStore) -> _Written | None:
    try:
        if RECORD in store.names():
            return _Written.model_validate_json(store.get(RECORD))
    except (CheckpointError, DamagedCheckpoint, ValidationError) as error:
        _log.warning("a new run begins at Weights & Biases: %s: %s", RECORD, error)
    return None


class WandbLog:
    """Hands scalars to a run; the scalars of one step together.

    The steps of a metric never go back: after a restart, values up to the step of ``record`` are
    left out. It is written before values are handed over, so that a killed process loses the latest
    ones and repeats none. A failure is logged once, and values are lost from then on.
    """

    def __init__(self, run: Any, record: RunRecord | None = None) -> None:
        self._run = run
        self._record = record or RunRecord()
        #: Waiting values by tag, with their step.
        self._rows: list[dict[str, float]] = []
        self._has_failed = False

    def begin(self, step: int) -> None:
        """See ScalarLog: the record knows it better, of each metric."""

    def write(self, scalar: Scalar) -> None:
        """Take a value."""
        if not self._record.note(scalar.tag, scalar.step):
            return
        newest = self._rows[-1] if self._rows else {}
        if newest.get(GLOBAL_STEP) != scalar.step or scalar.tag in newest:
            self._rows.append({GLOBAL_STEP: scalar.step})
        self._rows[-1][scalar.tag] = scalar.y

    def close(self) -> None:
        """End the run."""
        self.flush()
        self._try(self._run.finish)

    def flush(self) -> None:
        """Hand over waiting values, and write the record before."""
        rows, self._rows = self._rows, []
        if rows:
            self._record.save()
        for row in rows:
            self._try(partial(self._run.log, row))

    def update_config(self, values: Mapping[str, Any]) -> None:
        """Put values in the place of those that the run began with; any thread may call."""
        self._try(partial(self._run.config.update, dict(values), allow_val_change=True))

    def _try(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception:  # it is better to train without metrics than not to train
            if not self._has_failed:
                _log.exception("cannot hand metrics to Weights & Biases")
            self._has_failed = True


class WandbWriter(QueuedMetrics):
    """The run of ``project`` at Weights & Biases that ``record`` names; see ``QueuedMetrics``.

    Nothing is sent where WANDB_MODE is ``offline``. Files are written below ``directory``, the
    working directory by default. ``parameters`` are the run's configuration. Of this machine the
    name is told, and neither its load nor its code. The record is written, and values are handed
    over, every ``interval_s``. ``names`` has ``entity``, ``job_type`` and ``group`` of the run, by
    default that of its own name.

    ConfigurationError, with the ``option`` that asks for it, if the package is not installed, and
    if there is no API key.
    """

    def __init__(
        self,
        project: str,
        run_name: str,
        global_t: Callable[[], int],
        parameters: Mapping[str, Any],
        directory: Path | None = None,
        record: RunRecord | None = None,
        interval_s: float = 5.0,
        *,
        names: Mapping[str, str | None] | None = None,
        option: str = "--wandb-project",
    ) -> None:
        record = record or RunRecord()
        # Several trainings of one name are runs of its group.
        names = {"project": project, "name": run_name, "group": run_name, **(names or {})}
        run = _run(names, parameters, directory, record.id, option)
        if record.is_found:
            print(f"going on with run {record.id} of Weights & Biases", flush=True)
        log = WandbLog(run, record)
        #: Takes values of the configuration that have changed.
        self.update_config = log.update_config
        super().__init__(
            log, global_t, "Weights & Biases is too slow", flush_interval_s=interval_s,
        )  # fmt: skip

    def close(self, deadline_s: float = CLOSE_S) -> None:
        """Hand over queued values, and end the run, within ``deadline_s`` seconds."""
        super().close(deadline_s)


def _run(
    names: Mapping[str, str | None],
    parameters: Mapping[str, Any],
    directory: Path | None,
    run_id: str,
    option: str,
) -> Any:
    # Its reports of its own crashes would be network calls in offline mode, too.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    try:
        import wandb  # of an extra: only where it is asked for
    except ImportError as error:
        raise ConfigurationError(f"{option}: {_INSTALL} ({error})") from error

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
            raise ConfigurationError(f"{option}: {_LOG_IN}")
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        run = wandb.init(
            entity=names.get("entity"),
            project=names["project"],
            name=names["name"],
            group=names["group"],
            job_type=names.get("job_type"),
            id=run_id,
            resume="allow",
            reinit="create_new",  # evaluation managers of one process have a run each
            config=dict(parameters),
            allow_val_change=True,  # the content of the present YAML file
            dir=directory,
            settings=settings,
        )
    except (wandb.errors.Error, OSError, ValueError) as error:
        raise ConfigurationError(f"{option}: {error}") from error
    with suppress(wandb.errors.Error):
        run.define_metric(GLOBAL_STEP)
        run.define_metric("*", step_metric=GLOBAL_STEP)
    return run
