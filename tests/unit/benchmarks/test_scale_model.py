"""The cost model of ``benchmarks/scale.py`` finds costs again that made-up rows were made with."""

import numpy as np
import pytest
from processes import REPOSITORY
from scale_model import fitted
from scale_rows import Row, Size, rows_of

#: Seconds of a core.
COSTS = {
    "clients": {"message": 40e-6, "step": 1e-6, "update": 300e-6, "byte": 0.3e-9},
    "shared clients": {"message": 7e-6, "update": 200e-6},
    "balancer": {"connection": 4e-6, "message": 8e-6, "batch": 20e-6, "update": 50e-6},
    "rlx": {
        "connection": 50e-6, "message": 30e-6, "step": 2e-6, "multiplication": 50e-12,
        "batch": 400e-6, "batch beside another server": 100e-6, "update": 900e-6,
        "byte": 0.2e-9, "further slice": 200e-6,
    },
    "shards": {"slice": 300e-6, "byte": 0.5e-9},
}  # fmt: skip
CORES = 2.0

#: A worker's time, for each second of a core that it uses: it waits, too.
WAITS = 1.2


def made_up(size, steps=None):
    """A row of a machine with so many cores, which are in use unless workers or clients wait."""

    def row(steps):
        messages = steps / size.environments
        of_a_worker = size.connections / size.servers
        batches = messages / max(1.0, 0.7 * of_a_worker**0.9)
        per_update = 20 * size.environments**0.6 * of_a_worker**0.1 * size.shards**0.2
        updates = steps / per_update if size.learns else 0.0
        moved = 2 * 4 * size.parameters * updates
        amounts = {
            "connection": size.connections,
            "message": messages, "step": steps, "batch": batches, "update": updates, "byte": moved,
            "multiplication": steps * size.parameters * (4 if size.learns else 1),
            "further slice": updates * (size.shards - 1),
            "batch beside another server": batches * (size.servers - 1),
            "slice": updates * size.shards,
        }  # fmt: skip
        cores = {
            role: 1e-12 + sum(cost * amounts[work] for work, cost in works.items())
            for role, works in COSTS.items()
        }
        shared = cores.pop("shared clients")
        if size.shares_client_processes:
            cores["clients"] = shared
        mib = {**dict.fromkeys(cores, 64.0), "rlx": 600 + 0.02 * of_a_worker}
        return Row(size, steps, 1.0, 2.0, 3 * steps, batches, updates, cores, mib)

    if steps is not None or size.rate:
        return row(steps or size.rate * size.connections)
    idle, one = row(0.0).cores, row(1.0).cores
    of_a_step = sum(one.values()) - sum(idle.values())
    of_a_worker = one["rlx"] - idle["rlx"] - beside(row(1.0))
    of_workers = (size.servers - idle["rlx"]) / (WAITS * of_a_worker)
    return row(min((CORES - sum(idle.values())) / of_a_step, of_workers))


def beside(row):
    """What evaluations cost more because there are other servers, in cores."""
    return COSTS["rlx"]["batch beside another server"] * row.batches * (row.size.servers - 1)


FITTED = [
    made_up(Size(servers, shards, connections, environments, hidden, learns))
    for servers, shards in ((1, 1), (2, 1), (1, 2), (1, 4), (2, 4))
    for connections, environments, hidden, learns in (
        (16, 8, 256, True), (4, 8, 64, True), (32, 1, 512, True), (16, 1, 64, False),
        (8, 32, 64, False), (64, 4, 256, True), (8, 8, 512, False), (32, 32, 64, True),
    )
] + [
    made_up(Size(servers, 1, *other))
    for servers in (1, 2)
    for other in (
        (200, 1, 256, True), (1000, 1, 64, False),
        (200, 1, 64, True, 1.0), (1000, 1, 64, True, 1.0), (2000, 1, 64, True, 1.0),
    )
]  # fmt: skip


@pytest.fixture(name="model", scope="module")
def _model():
    return fitted(FITTED)


def test_costs_are_found_again(model):
    for role, works in COSTS.items():
        assert model.costs[role] == pytest.approx({"connection": 0.0, **works}, rel=1e-3), role


def test_without_rows_that_wait_connections_cost_nothing_but_their_messages():
    model = fitted([row for row in FITTED if not row.size.rate and row.size.connections == 16])
    assert {works["connection"] for works in model.costs.values()} == {0.0}
    limits = model.limits_of_a_cluster(Size(4, 2, 10_000, 1, 256, learns=True), 0.01)
    assert min(limits.values()) > 0


def test_a_worker_needs_more_time_than_it_uses_cores(model):
    expected = {w: WAITS * cost for w, cost in COSTS["rlx"].items() if w != "connection"}
    expected["batch beside another server"] = 0.0  # it is fitted to rows of one server
    assert model.of_worker == pytest.approx(expected, rel=1e-3)


def test_what_a_connection_takes_of_memory_is_found_again(model):
    assert model.memory["connection"] == pytest.approx(0.02, rel=1e-3)


def test_so_is_how_batches_grow(model):
    assert model.steps_per_update.factor == pytest.approx(20)
    assert model.steps_per_update.exponents == pytest.approx((0.6, 0.1, 0.2))
    assert model.messages_per_batch.factor == pytest.approx(0.7)
    assert model.messages_per_batch.exponents == pytest.approx((0.9,))


def test_the_published_run_with_four_servers_is_predicted_from_the_others():
    rows = rows_of(REPOSITORY / "docs" / "results" / "scale.json")
    model = fitted([row for row in rows if row.size.servers < 4])
    of_four = [row for row in rows if row.size.servers == 4]
    assert [row.size.shards for row in of_four] == [1, 2, 4]
    for row in of_four:
        assert model.steps_of_this_machine(row.size) == pytest.approx(row.steps, rel=0.2), row.size


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
    held = COSTS["rlx"]["connection"] * 100
    used = row.cores["rlx"] - held - beside(row)
    assert used == pytest.approx((4 - held) / WAITS, rel=0.01)
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
