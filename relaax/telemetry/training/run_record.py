"""Which run of Weights & Biases a training has, and how far it got, beside the checkpoints."""

import logging
import secrets
import time
from collections.abc import Callable
from math import inf

from pydantic import BaseModel, Field, ValidationError

from relaax.checkpoints import BlobStore
from relaax.errors import CheckpointError, DamagedCheckpoint

_log = logging.getLogger(__name__)

#: The name of the file.
RECORD = "wandb.json"


class _Written(BaseModel):
    """The content of the file."""

    id: str = Field(pattern=r"^[0-9a-z]{4,64}$")
    #: By tag: the highest step that was handed over.
    steps: dict[str, int] = {}


class RunRecord:
    """The run that a training goes on with after a restart, and the last step of each metric.

    Without a ``store``, and if ``is_new``, it is another run. It is time to write the file after
    ``interval_s`` seconds. A failed write is a warning.
    """

    def __init__(
        self,
        store: BlobStore | None = None,
        is_new: bool = False,
        interval_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._interval_s = interval_s
        self._clock = clock
        self._written_at = -inf
        found = None if store is None or is_new else _read(store)
        self._is_found = found is not None
        self._run = found or _Written(id=secrets.token_hex(8))
        #: By tag, the last step that earlier starts have handed over.
        self._before = dict(self._run.steps)

    @property
    def id(self) -> str:
        """The name that Weights & Biases has for the run."""
        return self._run.id

    @property
    def is_found(self) -> bool:
        """Whether an earlier start of the training has begun the run."""
        return self._is_found

    def note(self, tag: str, step: int) -> bool:
        """Note a value; return False if an earlier start has handed it over."""
        if step <= self._before.get(tag, -1):
            return False
        self._run.steps[tag] = max(step, self._run.steps.get(tag, step))
        return True

    def is_due(self) -> bool:
        """Return whether it is time to write the file."""
        return self._clock() - self._written_at >= self._interval_s

    def save(self) -> None:
        """Write the file."""
        if self._store is None:
            return
        self._written_at = self._clock()
        try:
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
