"""Surreal's buffers, as tables of a replay; seeds 000, "Buffer class", and 004, "Replay"."""

import time
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from relaax.compat.surreal.config import Config
from relaax.replay.limiter import Limiter
from relaax.replay.removers import RemoverName
from relaax.replay.specs import SelectorName, TableSpec
from relaax.replay.storage import NONE, Flags
from relaax.replay.table import Sample, Table
from relaax.replay.views import Transitions, View

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Updates that may be ahead of steps, or behind, where there are ``batches_per_step``.
_ERROR_BATCHES = 16

#: Steps of experiences that are not complete, of all actors together.
_BEGUN = 4096


class Buffer(Table):
    """A table with Surreal's hooks: ``insert, sample, evict, start_sample_condition``.

    An experience is an item over stored steps, by the row of its first step. A hook that you
    override calls ``super()`` of its name, and is not called by two threads at once. ``config`` is
    the algorithm's.
    """

    #: How experiences are drawn.
    selector: ClassVar[SelectorName] = "uniform"
    #: Which experiences leave where there would be more than the limiter's ``max_items``; None: no
    #: experience does, and actors wait.
    remover: ClassVar[RemoverName | None] = None
    #: Seconds between two calls of ``evict``, as far as anything is inserted; 0: it is not called.
    evict_interval_s: ClassVar[float] = 0.0

    def __init__(self, config: Config, *parts: Any) -> None:
        super().__init__(*parts)
        self.config = config
        #: Further arguments of ``Table.draw``, for the draw that goes on.
        self._more: tuple[Any, ...] = ()
        self._how: dict[str, Any] = {}
        self._evict_at = time.monotonic() + self.evict_interval_s

    @classmethod
    def spec(cls, config: Config) -> TableSpec:
        """Return the table as it is configured."""
        return TableSpec(
            view=cls.view(config),
            selector=cls.selector,
            limiter=cls.limiter(config),
            alpha=config.settings.alpha,
            remover=cls.remover,
            table=partial(cls, config),
        )

    @classmethod
    def view(cls, config: Config) -> View:
        """Return what an experience is: an n-step transition, shorter at an episode's end."""
        return Transitions(config.settings.n_step, config.settings.gamma)

    @classmethod
    def limiter(cls, config: Config) -> Limiter:
        """Return how far inserting and sampling keep in step: by ``batches_per_step``, if given."""
        settings = config.settings
        start = settings.sampling_start_size
        if settings.batches_per_step is None:
            return Limiter(min_items=start)
        per_insert = settings.batches_per_step * settings.batch_size
        return Limiter(
            min_items=start,
            samples_per_insert=per_insert,
            error_buffer=max(_ERROR_BATCHES * settings.batch_size, 2 * per_insert),
        )

    @classmethod
    def capacity(cls, config: Config) -> int:
        """Return how many steps are stored."""
        size: int = config.settings.memory_size
        return size

    def insert(self, items: IntArray) -> None:
        """Take up experiences, rows int64 [N], that have just become complete.

        ``read`` shows them. One that is not handed to ``super()`` is never sampled.
        """
        super().insert(items)
        if self.evict_interval_s and time.monotonic() >= self._evict_at:
            self._evict_at = time.monotonic() + self.evict_interval_s
            self.evict()

    def sample(self, batch_size: int) -> Sample:
        """Draw ``batch_size`` experiences; more columns may be added to what is returned."""
        return super().draw(batch_size, *self._more, **self._how)

    def evict(self) -> None:
        """Actively evict experiences, by ``remove``; steps make room for new ones by themselves."""

    def start_sample_condition(self) -> bool:
        """Return whether experiences may be sampled: once so many have ever come."""
        return self.counts.inserted >= self._limiter.min_items

    def read(self, items: IntArray) -> dict[str, npt.NDArray[Any]]:
        """Return experiences as arrays by name, as they are sampled."""
        return self._view.read(self._storage, items)

    def remove(self, items: IntArray) -> None:
        """Forget experiences; those that are not here are left out."""
        before = len(self)
        self._selector.remove(items)
        self.counts.evicted += before - len(self)

    def older_than(self, steps: int) -> IntArray:
        """Return the rows of all steps but the ``steps`` that were stored last."""
        serials = self._storage.serials
        is_older = (serials != NONE) & (serials < self._storage.stored - steps)
        rows: IntArray = np.flatnonzero(is_older)
        return rows

    def keeps_out(self, slot: int, flags: Flags) -> str:
        """See Table; what waits for more experience gets it, whatever the limiter says."""
        return super().keeps_out(slot, flags) if self._is_ready() else ""

    def draw(self, count: int, *more: Any, **how: Any) -> Sample:
        """See Table; ``sample`` draws, in the way that is asked for here."""
        self._more, self._how = more, how
        return self.sample(count)

    def update_priorities(self, keys: IntArray, priorities: FloatArray) -> int:
        """See Table; where nothing has a priority, errors of a learner are not used."""
        has_any = self.priority_power is not None
        return super().update_priorities(keys, priorities) if has_any else 0

    def _is_ready(self) -> bool:
        return super()._is_ready() and self.start_sample_condition()


class UniformBuffer(Buffer):
    """Draws with replacement, each experience as probable as every other."""


class FIFOBuffer(Buffer):
    """Hands each experience out once, the oldest first, for learning on policy.

    Where it is full, actors wait: nothing is dropped silently. With ``remover = "fifo"`` the oldest
    experiences leave instead, as Surreal's do, and are counted.
    """

    selector = "fifo"

    @classmethod
    def limiter(cls, config: Config) -> Limiter:
        """Return that a batch is drawn when it is there, and that ``memory_size`` are the most."""
        most, batch = config.settings.memory_size, config.settings.batch_size
        return Limiter(min_items=batch, max_items=max(most, batch))

    @classmethod
    def capacity(cls, config: Config) -> int:
        """Return room for what waits, and for what actors have begun."""
        return 2 * int(config.settings.memory_size) + _BEGUN


class PrioritizedBuffer(Buffer):
    """Draws in proportion to priorities to the power ``alpha`` (Schaul et al. 2016).

    Priorities are what ``Learner.learn`` returns; ``weight`` in a batch undoes them.
    """

    selector = "prioritized"
