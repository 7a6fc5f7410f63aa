"""Draws batches of fixed parts of several tables that replay servers hold."""

from collections.abc import Sequence
from time import monotonic

import numpy as np

from relaax.replay.client.sampler import ShardedSampler, Unfinished
from relaax.replay.mixed import mixed, parts_of
from relaax.replay.selectors import FloatArray, IntArray
from relaax.replay.specs import MixedSpec, ReplaySpec, TableSpec
from relaax.replay.table import Sample
from relaax.telemetry.metrics import Metrics


class MixedSampler:
    """Draws each part as a ``ShardedSampler`` of its table does; see ``Mixed``, and that."""

    def __init__(
        self, urls: Sequence[str], table: str, spec: ReplaySpec, random: np.random.Generator
    ) -> None:
        of = spec.tables[table]
        if not isinstance(of, MixedSpec):
            raise ValueError(f"{table!r} is not made of other tables")
        self._names = list(of.fractions)
        self._fractions = np.array(list(of.fractions.values()))
        self._axis = spec.view(table).item_axis
        self._has_priorities = [_has_priorities(spec, name) for name in self._names]
        self._unfinished: Unfinished[dict[str, Sample]] = Unfinished(lambda count: {})
        #: One of each table.
        self.samplers = [ShardedSampler(urls, name, spec, random) for name in self._names]

    @property
    def actions(self) -> int:
        """See ShardedSampler."""
        return self.samplers[0].actions

    @property
    def lost(self) -> int:
        """See ShardedSampler."""
        return self.samplers[0].lost

    def report(self, metrics: Metrics) -> None:
        """See ShardedSampler."""
        self.samplers[0].report(metrics)

    def sample(self, table: str, count: int, timeout_s: float) -> Sample:
        """See ShardedSampler."""
        deadline = monotonic() + timeout_s
        parts = parts_of(count, self._fractions).tolist()
        with self._unfinished.resumed(count) as drawn:
            for name, part, sampler in zip(self._names, parts, self.samplers, strict=True):
                if part and name not in drawn:
                    left = max(0.0, deadline - monotonic())
                    drawn[name] = sampler.sample(name, part, left)
        samples = [drawn.get(name) for name in self._names]
        items = sum(sample.items for sample in samples if sample is not None)
        return mixed(samples, self._axis, items)

    def update_priorities(self, table: str, keys: IntArray, priorities: FloatArray) -> int:
        """Give items other priorities [N] in the tables that have any; return how many are gone."""
        return min(
            sampler.update_priorities(name, keys, priorities)
            for name, sampler, has in zip(
                self._names, self.samplers, self._has_priorities, strict=True
            )
            if has
        )

    def close(self) -> None:
        """See ShardedSampler."""
        for sampler in self.samplers:
            sampler.close()


def _has_priorities(spec: ReplaySpec, name: str) -> bool:
    table = spec.tables[name]
    return isinstance(table, TableSpec) and table.selector == "prioritized"
