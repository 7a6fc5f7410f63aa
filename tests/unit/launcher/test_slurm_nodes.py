"""On which node of a Slurm allocation each process is."""

import pytest

from relaax.errors import ConfigurationError
from relaax.launcher.described import Needs, Placement, copied, described
from relaax.launcher.engines.slurm import Node, SlurmEngine, placed_on

NODES = [Node("a", "10.0.0.1", 4, []), Node("b", "10.0.0.2", 2, []), Node("c", "10.0.0.3", 4, [])]
PROCESSES = described(dict.fromkeys(("ps", "rlx", "learner", "env"), "true"))


def names(placement, **needs):
    placed = placed_on(NODES, copied(PROCESSES, {}, needs), placement)
    return "".join(placed[process.name].name for process in PROCESSES)


def test_spread_each_is_where_most_cores_are_left():
    assert names(Placement.SPREAD) == "acac"
    assert names(Placement.SPREAD, rlx=Needs(4), ps=Needs(3)) == "acba"


def test_packed_the_first_node_that_has_room_is_taken():
    assert names(Placement.PACK) == "aaaa"
    assert names(Placement.PACK, rlx=Needs(4), learner=Needs(2)) == "acaa"


def test_nodes_without_room_are_shared():
    assert names(Placement.PACK, **dict.fromkeys(("ps", "rlx", "learner", "env"), Needs(4))) == (
        "acba"[:2] + "ba"
    )


@pytest.mark.parametrize("job", [None, "1"], ids=["no job", "a number and no more"])
def test_outside_of_an_allocation_it_is_said_how_to_get_one(monkeypatch, job):
    for name in ("SLURM_JOB_ID", "SLURM_JOB_NUM_NODES"):
        monkeypatch.delenv(name, raising=False)
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    with pytest.raises(
        ConfigurationError, match="salloc --nodes=3 relaax-train PROCFILE --on slurm"
    ):
        SlurmEngine(PROCESSES, Placement.SPREAD, {})
