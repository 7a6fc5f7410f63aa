"""What a training costs, by role: fitted from measured sizes, it says what others would reach.

Each role's use of processors is a sum of what it does, times what that costs:

- ``clients``: messages and steps;
- ``balancer``: messages;
- ``rlx``: messages, steps, evaluations of the network, updates, and bytes of updates;
- ``shards``: slices of updates, and their bytes.

Costs are seconds of one core, not negative, by least squares of relative errors (each row counts as
much, whatever its size). How many messages an evaluation has, and how many steps an update, grows
with the connections and the environments of a worker: a power law, fitted likewise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scale_rows import ROLES, Row, Size
from scipy.optimize import nnls

_BYTES = 4

#: Of an update: the gradient, and the values that come back.
_DIRECTIONS = 2

#: By role, what it does in a second, given a size and the rates of messages, batches and updates.
Rates = Mapping[str, float]
_WORK: Mapping[str, Mapping[str, Callable[[Size, Rates], float]]] = {
    "clients": {
        "message": lambda size, rates: rates["messages"],
        "step": lambda size, rates: rates["steps"],
    },
    "balancer": {"message": lambda size, rates: rates["messages"]},
    "rlx": {
        "message": lambda size, rates: rates["messages"],
        "step": lambda size, rates: rates["steps"],
        "batch": lambda size, rates: rates["batches"],
        "update": lambda size, rates: rates["updates"],
        "byte": lambda size, rates: rates["updates"] * bytes_of(size),
    },
    "shards": {
        "slice": lambda size, rates: rates["updates"] * size.shards,
        "byte": lambda size, rates: rates["updates"] * bytes_of(size),
    },
}


def bytes_of(size: Size) -> float:
    """Return what an update moves between a worker and all shards."""
    return _DIRECTIONS * _BYTES * size.parameters


@dataclass(frozen=True)
class PowerLaw:
    """``factor * x**exponent``, and 1 at least."""

    factor: float
    exponent: float

    @classmethod
    def fitted(cls, x: Sequence[float], y: Sequence[float]) -> "PowerLaw":
        """Return the law of the least squared differences of logarithms."""
        design = np.stack([np.ones(len(x)), np.log(x)], axis=1)
        (factor, exponent), *_ = np.linalg.lstsq(design, np.log(y), rcond=None)
        return cls(float(np.exp(factor)), float(exponent))

    def at(self, x: float) -> float:
        """Return its value."""
        return max(1.0, self.factor * float(x**self.exponent))


@dataclass(frozen=True)
class Machine:
    """How many cores there are, for all roles together, and for one worker."""

    cores: float
    #: A worker is one process, of which Python code runs on one core at a time.
    worker_cores: float


@dataclass(frozen=True)
class Model:
    """Fitted costs."""

    #: Seconds of a core, by role and work.
    costs: Mapping[str, Mapping[str, float]]
    #: Messages of an evaluation, by the connections of a worker.
    messages_per_batch: PowerLaw
    #: Steps of an update, by the environments of a worker.
    steps_per_update: PowerLaw
    machine: Machine

    def rates(self, size: Size, steps: float) -> dict[str, float]:
        """Return what happens in a second at a rate of steps."""
        messages = steps / size.environments
        of_a_worker = max(1.0, size.connections / size.servers)
        updates = steps / self.steps_per_update.at(of_a_worker * size.environments)
        return {
            "steps": steps,
            "messages": messages,
            "batches": messages / self.messages_per_batch.at(of_a_worker),
            "updates": updates if size.learns else 0.0,
        }

    def cores(self, role: str, size: Size, rates: Rates) -> float:
        """Return how many cores a role uses."""
        return sum(cost * _WORK[role][work](size, rates) for work, cost in self.costs[role].items())

    def steps_of_this_machine(self, size: Size) -> float:
        """Return the steps a second where all roles share this machine's cores."""
        one = {role: self.cores(role, size, self.rates(size, 1.0)) for role in ROLES}
        return min(
            self.machine.cores / sum(one.values()),
            size.servers * self.machine.worker_cores / one["rlx"],
        )

    def limits_of_a_cluster(self, size: Size, environment_s: float) -> dict[str, float]:
        """Return the steps a second at which each part would be busy all the time.

        Each RLX server has a machine with one worker, each shard has a core, and the balancer has
        one. An environment needs ``environment_s`` for a step that is answered at once.
        """
        one = {role: self.cores(role, size, self.rates(size, 1.0)) for role in ROLES}
        limits = {
            "environments": size.connections * size.environments / environment_s,
            "balancer": 1.0 / one["balancer"],
            "rlx": size.servers * self.machine.worker_cores / one["rlx"],
        }
        if size.learns:
            limits["shards"] = size.shards / one["shards"]
        return limits


def fitted(rows: Sequence[Row]) -> Model:
    """Return the model of measured rows."""
    learning = [row for row in rows if row.size.learns]
    return Model(
        {role: _costs(role, rows) for role in ROLES},
        PowerLaw.fitted(
            [row.size.connections / row.size.servers for row in rows],
            [row.messages / row.batches for row in rows],
        ),
        PowerLaw.fitted(
            [row.size.connections * row.size.environments / row.size.servers for row in learning],
            [row.steps / row.updates for row in learning],
        ),
        Machine(
            max(sum(row.cores.values()) for row in rows),
            max(row.cores["rlx"] / row.size.servers for row in rows),
        ),
    )


def rates_of(row: Row) -> dict[str, float]:
    """Return what happened in a second."""
    return {
        "steps": row.steps,
        "messages": row.messages,
        "batches": row.batches,
        "updates": row.updates,
    }


def _costs(role: str, rows: Sequence[Row]) -> dict[str, float]:
    works = _WORK[role]
    used = np.array([row.cores[role] for row in rows])
    design = np.array([[work(row.size, rates_of(row)) for work in works.values()] for row in rows])
    # Columns differ by orders of magnitude: a byte costs less than a step.
    relative = design / used[:, None]
    scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
    costs, _ = nnls(relative / scale, np.ones(len(rows)))
    return dict(zip(works, map(float, costs / scale), strict=True))
