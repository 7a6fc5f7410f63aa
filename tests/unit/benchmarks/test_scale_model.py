"""The cost model of ``benchmarks/scale.py`` finds costs again that made-up rows were made with."""

import numpy as np
import pytest
from scale_model import bytes_of, fitted
from scale_rows import Row, Size

COSTS = {"message": 30e-6, "step": 2e-6, "batch": 400e-6, "update": 900e-6, "byte": 0.2e-9}
SLICE, SLICE_BYTE, CLIENT, BALANCER = 300e-6, 0.5e-9, 40e-6, 8e-6
CORES = 2.0


def made_up(size, steps=None):
    """A row of a machine with so many cores, all of which are in use."""

    def row(steps):
        messages = steps / size.environments
        of_a_worker = size.connections / size.servers
        batches = messages / max(1.0, 0.5 * of_a_worker**0.8)
        updates = steps / (5 * (of_a_worker * size.environments) ** 0.5) if size.learns else 0.0
        moved = updates * bytes_of(size)
        cores = {
            "clients": CLIENT * messages,
            "balancer": BALANCER * messages,
            "rlx": COSTS["message"] * messages + COSTS["step"] * steps + COSTS["batch"] * batches
            + COSTS["update"] * updates + COSTS["byte"] * moved,
            "shards": 1e-9 + SLICE * updates * size.shards + SLICE_BYTE * moved,
        }  # fmt: skip
        return Row(size, steps, 1.0, 2.0, 3 * steps, batches, updates, cores, {})

    return row(CORES / sum(row(1.0).cores.values())) if steps is None else row(steps)


FITTED = [
    made_up(Size(servers, shards, connections, environments, hidden, learns))
    for servers, shards in ((1, 1), (2, 1), (1, 2), (2, 4))
    for connections, environments, hidden, learns in (
        (16, 8, 256, True), (4, 8, 64, True), (32, 1, 512, True), (16, 1, 64, False),
        (8, 32, 64, False), (64, 4, 256, True),
    )
]  # fmt: skip


@pytest.fixture(name="model", scope="module")
def _model():
    return fitted(FITTED)


def test_costs_are_found_again(model):
    assert model.costs["rlx"] == pytest.approx(COSTS, rel=1e-3)
    assert model.costs["balancer"] == pytest.approx({"message": BALANCER})
    assert model.costs["shards"] == pytest.approx({"slice": SLICE, "byte": SLICE_BYTE}, rel=1e-3)
    assert model.costs["clients"]["message"] == pytest.approx(CLIENT, rel=1e-3)


def test_so_is_how_batches_grow(model):
    assert model.steps_per_update.factor == pytest.approx(5)
    assert model.steps_per_update.exponent == pytest.approx(0.5)
    assert model.messages_per_batch.exponent == pytest.approx(0.8, abs=0.05)  # 1 at least


@pytest.mark.parametrize("connections", [16, 64])
def test_more_servers_are_predicted(model, connections):
    size = Size(4, 2, connections, 8, 256, learns=True)
    assert model.steps_of_this_machine(size) == pytest.approx(made_up(size).steps, rel=0.02)


def test_each_part_of_a_cluster_has_its_limit(model):
    size = Size(4, 2, 100, 1, 256, learns=True)
    limits = model.limits_of_a_cluster(size, 0.01)
    assert limits["environments"] == pytest.approx(10_000)
    assert limits["balancer"] == pytest.approx(1 / BALANCER)
    row = made_up(size, steps=limits["rlx"])
    assert row.cores["rlx"] == pytest.approx(4 * model.machine.worker_cores, rel=0.05)
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
