"""The cost model of ``benchmarks/scale.py`` finds costs again that made-up rows were made with."""

import numpy as np
import pytest
from scale_model import fitted
from scale_rows import Row, Size

#: Seconds of a core.
COSTS = {
    "clients": {"message": 40e-6, "step": 1e-6, "update": 300e-6, "byte": 0.3e-9},
    "balancer": {"message": 8e-6, "update": 50e-6},
    "rlx": {
        "message": 30e-6, "step": 2e-6, "multiplication": 50e-12, "batch": 400e-6,
        "update": 900e-6, "byte": 0.2e-9, "staged update": 700e-6, "further slice": 200e-6,
    },
    "shards": {"slice": 300e-6, "staged slice": 200e-6, "byte": 0.5e-9},
}  # fmt: skip
CORES = 2.0

#: A worker's time, for each second of a core that it uses: it waits, too.
WAITS = 1.2


def made_up(size, steps=None):
    """A row of a machine with so many cores, which are in use unless workers wait."""

    def row(steps):
        messages = steps / size.environments
        of_a_worker = size.connections / size.servers
        batches = messages / max(1.0, 0.7 * of_a_worker**0.9)
        per_update = 20 * size.environments**0.6 * of_a_worker**0.1 * size.shards**0.2
        updates = steps / per_update if size.learns else 0.0
        moved = 2 * 4 * size.parameters * updates
        is_staged = size.shards > 1
        amounts = {
            "message": messages, "step": steps, "batch": batches, "update": updates, "byte": moved,
            "multiplication": steps * size.parameters * (4 if size.learns else 1),
            "staged update": updates * is_staged, "further slice": updates * (size.shards - 1),
            "slice": updates * size.shards, "staged slice": updates * size.shards * is_staged,
        }  # fmt: skip
        cores = {
            role: 1e-12 + sum(cost * amounts[work] for work, cost in works.items())
            for role, works in COSTS.items()
        }
        return Row(
            size, steps, 1.0, 2.0, 3 * steps, batches, updates, cores, dict.fromkeys(cores, 64.0)
        )

    if steps is not None:
        return row(steps)
    one = row(1.0).cores
    return row(min(CORES / sum(one.values()), size.servers / (WAITS * one["rlx"])))


FITTED = [
    made_up(Size(servers, shards, connections, environments, hidden, learns))
    for servers, shards in ((1, 1), (2, 1), (1, 2), (1, 4), (2, 4))
    for connections, environments, hidden, learns in (
        (16, 8, 256, True), (4, 8, 64, True), (32, 1, 512, True), (16, 1, 64, False),
        (8, 32, 64, False), (64, 4, 256, True), (8, 8, 512, False), (32, 32, 64, True),
    )
]  # fmt: skip


@pytest.fixture(name="model", scope="module")
def _model():
    return fitted(FITTED)


def test_costs_are_found_again(model):
    for role, works in COSTS.items():
        assert model.costs[role] == pytest.approx(works, rel=1e-3), role


def test_a_worker_needs_more_time_than_it_uses_cores(model):
    expected = {work: WAITS * cost for work, cost in COSTS["rlx"].items()}
    assert model.of_worker == pytest.approx(expected, rel=1e-3)


def test_so_is_how_batches_grow(model):
    assert model.steps_per_update.factor == pytest.approx(20)
    assert model.steps_per_update.exponents == pytest.approx((0.6, 0.1, 0.2))
    assert model.messages_per_batch.factor == pytest.approx(0.7)
    assert model.messages_per_batch.exponents == pytest.approx((0.9,))


@pytest.mark.parametrize("connections", [16, 64])
def test_more_servers_are_predicted(model, connections):
    size = Size(4, 2, connections, 8, 256, learns=True)
    assert model.steps_of_this_machine(size) == pytest.approx(made_up(size).steps, rel=0.02)


def test_each_part_of_a_cluster_has_its_limit(model):
    size = Size(4, 2, 100, 1, 256, learns=True)
    limits = model.limits_of_a_cluster(size, 0.01)
    assert limits["environments"] == pytest.approx(10_000)
    row = made_up(size, steps=limits["balancer"])
    assert row.cores["balancer"] == pytest.approx(1, rel=0.01)
    row = made_up(size, steps=limits["rlx"])
    assert row.cores["rlx"] == pytest.approx(4 / WAITS, rel=0.01)
    row = made_up(size, steps=limits["shards"])
    assert row.cores["shards"] == pytest.approx(2, rel=0.02)
    more = model.limits_of_a_cluster(Size(8, 2, 100, 1, 256, learns=True), 0.01)
    assert more["rlx"] > limits["rlx"]
    more = model.limits_of_a_cluster(Size(4, 4, 100, 1, 256, learns=True), 0.01)
    assert more["shards"] > limits["shards"]


def test_a_cost_is_never_negative():
    noisy = np.random.default_rng(1)
    rows = [
        Row(
            **{**vars(row), "cores": {k: v * noisy.uniform(0.7, 1.3) for k, v in row.cores.items()}}
        )
        for row in FITTED
    ]
    for works in fitted(rows).costs.values():
        assert min(works.values()) >= 0
