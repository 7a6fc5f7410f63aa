"""What became of each step that a client has taken.

A step is sent by a client and taken by a worker, or by an actor and its own environment, delivered
to a replay server and stored there, and counted by the parameter server. Each of them counts it in
memory that outlives it, so that the differences are what was lost between two of them. How much
these can be at most is known as well: what one end does not know to have arrived. A loss without a
process that has ended, and a step that counts twice, are beyond these bounds.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from soak_client import ANSWERED, SENT
from soak_entries import Entry, Ledger
from soak_processes import Run
from soak_rollbacks import Rollback
from soak_training import Training

_BEGAN = re.compile(r"global step is (\d+)")


def began_with(run: Run) -> int:
    """Return the global step that a parameter server has restored."""
    found = _BEGAN.search(run.text())
    return 0 if found is None else int(found[1])


def reached(run: Run) -> int:
    """Return the global step that a parameter server has counted up to, so far or at its end."""
    return began_with(run) + int(run.totals().get("counted", 0))


def on_the_way(training: Training) -> int:
    """Return how many steps processes that run have not handed on."""
    acting = sum(
        int(t["taken"] - t["delivered"] - t["dropped"] - t.get("lost", 0))
        for role in ("RLX server", "actor")
        for each in training.of(role)
        if each.run.is_alive and (t := each.run.totals())
    )
    return acting + sum(_uncounted(each.run) for each in training.of("replay"))


def ledger(training: Training, global_step: int, with_first: Sequence[Rollback]) -> Ledger:
    """Add up all; clients and actors have ended, and nothing is on its way.

    ``with_first`` are the rollbacks at ends of the first shard: it alone counts steps.
    """
    sent = sum(each[SENT] for each in training.counts)
    answered = sum(each[ANSWERED] for each in training.counts)
    played = sum(each[SENT] for each in training.actor_counts)
    workers, actors = _sums(training, "RLX server"), _sums(training, "actor")
    taken = int(workers["taken"] + actors["taken"])
    delivered, dropped = (int(workers[n] + actors[n]) for n in ("delivered", "dropped"))
    lost_in_actors = played - int(actors["taken"])
    stored = int(_sums(training, "replay")["stored"])
    shards = training.of("shard")[0].runs
    counted = sum(int(run.totals().get("counted", 0)) for run in shards)
    ended = [run for each in training.of("replay") for run in each.runs if run is not each.run]
    undelivered = taken - delivered - dropped
    return Ledger(
        sent + played,
        global_step,
        [
            Entry(
                "on lost connections", sent - int(workers["taken"]), sent - answered, "not answered"
            ),
            Entry(
                "in actors that were about to take them",
                lost_in_actors,
                sum(len(each.runs) for each in training.of("actor")),
                "ends",
            ),
            Entry("dropped by workers and actors", dropped, 0, "as they wait"),
            Entry(
                "with workers and actors",
                undelivered - (stored - delivered),
                undelivered,
                "of their counts",
            ),
            Entry(
                "with replay servers",
                stored - counted,
                sum(_uncounted(run) for run in ended),
                "of their counts",
            ),
            _taken_back("with the first shard", with_first),
        ],
        on_the_way(training),
    )


def rollbacks(training: Training) -> list[tuple[int, Run]]:
    """Return how many steps each end of the first shard has cost, and which run of it ended."""
    runs = training.of("shard")[0].runs
    return [(reached(run) - began_with(after), run) for run, after in pairwise(runs)]


def _taken_back(name: str, found: Sequence[Rollback]) -> Entry:
    steps, most = sum(each.steps for each in found), sum(each.most for each in found)
    return Entry(name, steps, most, "since checkpoints")


def _uncounted(run: Run) -> int:
    totals = run.totals()
    return int(totals["stored"] - totals["counted"]) if totals else 0


def _sums(training: Training, role: str) -> dict[str, float]:
    sums: dict[str, float] = {}
    for process in training.of(role):
        for run in process.runs:
            for name, count in run.totals().items():
                sums[name] = sums.get(name, 0.0) + count
    return sums
