"""A replay's counts, sizes and rates are metrics of its server."""

import numpy as np
from replay_cases import SCHEMA, steps

from relaax.metrics import Metrics
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.views import Transitions
from relaax.server.replay_server.meter import ReplayMeter


class Stored(Metrics):
    def __init__(self):
        self.values = {}

    def scalar(self, name, y, x=None):
        self.values[name] = y


def test_counts_sizes_and_rates_are_stored_in_the_servers_own_group():
    spec = ReplaySpec(SCHEMA, 256, {"all": TableSpec(Transitions())})
    replay, stored = spec.make(np.random.default_rng(0), 60.0), Stored()
    meter = ReplayMeter(replay, stored, "host-7003")
    meter.store()
    replay.open_writer("w", SCHEMA)
    replay.append("w", 0, 0, *steps(0, 10))
    replay.sample("all", 4, 0.0)
    meter.store()
    assert stored.values["replay host-7003/steps"] == 10
    assert stored.values["replay host-7003/writers"] == 1
    assert stored.values["replay host-7003/all items"] == 10
    assert stored.values["replay host-7003/all drawn"] == 4
    for name in ("steps lost", "steps twice", "steps evicted", "all evicted", "all stale_updates"):
        assert stored.values[f"replay host-7003/{name}"] == 0
    assert stored.values["replay host-7003/steps stored per second"] > 0
    assert stored.values["replay host-7003/all drawn per second"] > 0
