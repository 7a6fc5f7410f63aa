"""Where a learner's samples come from: a replay of its own, or replay servers."""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from relaax.address import Address
from relaax.net.listening import naming_bind
from relaax.processes.periodic_tasks import Task, TasksThread
from relaax.replay.client.sampler import Samplers
from relaax.replay.mixed import SampleSource, Sources
from relaax.replay.process.replay_contents import Contents
from relaax.replay.process.replay_metrics import ReplayMetrics
from relaax.replay.replay import Replay
from relaax.replay.service import LINGER_S, ReplayPort
from relaax.replay.specs import ReplaySpec
from relaax.telemetry.metrics import Metrics

_log = logging.getLogger(__name__)


class Experience(ABC):
    """What the learner's process draws from; it is closed at the end."""

    #: Where samples come from.
    source: SampleSource
    #: Where steps are delivered, in words.
    place: str

    def steps_to_count(self) -> int:
        """Return how many steps this process must report to the parameter server."""
        return 0

    def count_lost(self, global_t: int) -> None:
        """Take note that ``global_t`` steps had been counted when this process began."""

    def stats(self) -> Mapping[str, float]:
        """Return what a replay of this process has counted; nothing of other processes."""
        return {}

    @abstractmethod
    def tend(self) -> None:
        """Do what is due; called once a second."""

    @abstractmethod
    def finish(self, is_over: bool) -> str:
        """Let workers end, if the training ``is_over``; return what came, in words."""

    @abstractmethod
    def close(self) -> None:
        """Release what it holds."""


class OwnReplay(Experience):
    """A replay in this process, and the port at which workers deliver.

    ``tasks`` are done from time to time, on a thread of their own. ``contents`` saves what the
    replay holds when it is closed. ConfigurationError if the port is taken.
    """

    def __init__(
        self,
        replay: Replay,
        spec: ReplaySpec,
        bind: Address,
        metrics: Metrics,
        tasks: Sequence[Task] = (),
        contents: Contents | None = None,
    ) -> None:
        self._replay = replay
        self.source = Sources(spec, dict.fromkeys(spec.own_tables, replay))
        self.place = f"what is delivered at {bind}"
        self._contents = contents
        self._counted_before = replay.actions
        self._metrics = ReplayMetrics(replay.stats, metrics)
        with naming_bind():
            self._port = ReplayPort(bind, replay)
        self._tasks = TasksThread(tasks, "replay tasks")

    def steps_to_count(self) -> int:
        """See Experience: all that were delivered to this process, and not to one before it."""
        return self._replay.actions - self._counted_before

    def count_lost(self, global_t: int) -> None:
        """See Experience: what a learner before had stored is gone, unless it was restored.

        What a save lacks is counted as soon as workers go on.
        """
        if global_t > 0 and not self._counted_before:
            self._replay.count_lost(global_t)
            _log.warning(
                "the %d steps of before this start are not stored any more (--save-replay keeps "
                "them)",
                global_t,
            )

    def stats(self) -> Mapping[str, float]:
        """See Experience."""
        return self._replay.stats()

    def tend(self) -> None:
        """See Experience."""
        self._replay.reclaim()
        self._metrics.store()

    def finish(self, is_over: bool) -> str:
        """See Experience: take, and drop, what still comes for a while.

        Not so where the training goes on from what is saved: workers keep it for the next learner.
        """
        if is_over or self._contents is None:
            self._replay.end()
            time.sleep(LINGER_S)
        stored = int(self._replay.stats()["steps stored"])
        return f"{stored:,} steps of environments were delivered"

    def close(self) -> None:
        """See Experience: save what is there; CheckpointError if that is impossible."""
        self._tasks.stop()
        self._port.close()  # what is acknowledged from now on would not be saved
        self._tasks.close()
        if self._contents is not None:
            self._contents.save()


class ReplayServers(Experience):
    """Replay servers, which count steps themselves, and those that they lose."""

    def __init__(
        self,
        addresses: Sequence[Address],
        tables: Sequence[str],
        spec: ReplaySpec,
        random: np.random.Generator,
        metrics: Metrics,
    ) -> None:
        urls = [str(address) for address in addresses]
        self.place = f"what is delivered at {', '.join(urls)}"
        self.source = self._samplers = Samplers(urls, tables, spec, random)
        self._metrics = metrics

    def tend(self) -> None:
        """See Experience."""
        self._samplers.first.report(self._metrics)

    def finish(self, is_over: bool) -> str:
        """See Experience."""
        self.tend()
        sampler = self._samplers.first
        return (
            f"{sampler.actions:,} steps of environments were delivered to replay servers, "
            f"{sampler.lost:,} of them were lost"
        )

    def close(self) -> None:
        """See Experience."""
        self._samplers.close()
