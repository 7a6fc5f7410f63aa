"""What a training costs, by role: fitted from measured sizes, it says what others would reach.

Each role's use of processors is a sum of what it does, times what that costs:

- ``clients``: messages, steps, updates, and bytes of updates;
- ``balancer``: messages, and updates;
- ``rlx``: messages, steps, multiplications by parameters, evaluations of the network (batches),
  updates, and bytes of updates;
- ``shards``: slices of updates, and their bytes.

An update costs those who have no part in it, too: it takes their caches. With several shards an
update is staged by all before any applies it: that costs something an update, and a slice.

Costs are seconds of one core, not negative, by least squares of relative errors (each row counts as
much, whatever its size). How many messages an evaluation has, and how many steps an update, grows
with the connections of a worker, with the environments on each, and with the shards, for which an
update takes longer: power laws, fitted likewise.

A worker does one thing at a time, and waits for the answers of the shards and for its clients. What
its work takes of its time is fitted to the rows of one server, whose worker is what limits them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scale_rows import ROLES, Row, Size
from scipy.optimize import nnls

_BYTES = 4

#: Of an update: the gradient, and the values that come back.
_DIRECTIONS = 2

#: How often a step is multiplied by each parameter: when it is evaluated, and where it is learnt
#: from, forwards and, twice, backwards.
_EVALUATED, _LEARNT = 1, 3

#: By role, what it does in a second, given a size and the rates of messages, batches and updates.
Rates = Mapping[str, float]
_WORK: Mapping[str, Mapping[str, Callable[[Size, Rates], float]]] = {
    "clients": {
        "message": lambda size, rates: rates["messages"],
        "step": lambda size, rates: rates["steps"],
        "update": lambda size, rates: rates["updates"],
        "byte": lambda size, rates: rates["updates"] * bytes_of(size),
    },
    "balancer": {
        "message": lambda size, rates: rates["messages"],
        "update": lambda size, rates: rates["updates"],
    },
    "rlx": {
        "message": lambda size, rates: rates["messages"],
        "step": lambda size, rates: rates["steps"],
        "multiplication": lambda size, rates: rates["steps"] * multiplications_of(size),
        "batch": lambda size, rates: rates["batches"],
        "update": lambda size, rates: rates["updates"],
        "byte": lambda size, rates: rates["updates"] * bytes_of(size),
        "staged update": lambda size, rates: rates["updates"] * (size.shards > 1),
        "further slice": lambda size, rates: rates["updates"] * (size.shards - 1),
    },
    "shards": {
        "slice": lambda size, rates: rates["updates"] * size.shards,
        "staged slice": lambda size, rates: rates["updates"] * size.shards * (size.shards > 1),
        "byte": lambda size, rates: rates["updates"] * bytes_of(size),
    },
}


def bytes_of(size: Size) -> float:
    """Return what an update moves between a worker and all shards."""
    return _DIRECTIONS * _BYTES * size.parameters


def multiplications_of(size: Size) -> float:
    """Return how many multiplications a step needs."""
    return size.parameters * (_EVALUATED + _LEARNT * size.learns)


@dataclass(frozen=True)
class PowerLaw:
    """``factor * x1**exponent1 * x2**exponent2 ...``, and 1 at least."""

    factor: float
    exponents: tuple[float, ...]

    @classmethod
    def fitted(cls, x: Sequence[Sequence[float]], y: Sequence[float]) -> "PowerLaw":
        """Return the law of the least squared differences of logarithms."""
        design = np.concatenate([np.ones((len(x), 1)), np.log(x)], axis=1)
        (factor, *exponents), *_ = np.linalg.lstsq(design, np.log(y), rcond=None)
        return cls(float(np.exp(factor)), tuple(map(float, exponents)))

    def at(self, *x: float) -> float:
        """Return its value."""
        return max(1.0, self.factor * float(np.prod(np.power(x, self.exponents))))


@dataclass(frozen=True)
class Model:
    """Fitted costs."""

    #: Seconds of a core, by role and work.
    costs: Mapping[str, Mapping[str, float]]
    #: Seconds of a worker, by work.
    of_worker: Mapping[str, float]
    #: Messages of an evaluation, by the connections of a worker.
    messages_per_batch: PowerLaw
    #: Steps of an update, by environments on a connection, connections of a worker, and shards.
    steps_per_update: PowerLaw
    #: How many cores are in use where all roles share this machine, and there is enough to do.
    cores_of_machine: float

    def rates(self, size: Size, steps: float) -> dict[str, float]:
        """Return what happens in a second at a rate of steps."""
        messages = steps / size.environments
        of_a_worker = max(1.0, size.connections / size.servers)
        per_update = self.steps_per_update.at(size.environments, of_a_worker, size.shards)
        return {
            "steps": steps,
            "messages": messages,
            "batches": messages / self.messages_per_batch.at(of_a_worker),
            "updates": steps / per_update if size.learns else 0.0,
        }

    def cores(self, role: str, size: Size, rates: Rates) -> float:
        """Return how many cores a role uses."""
        work = _amounts(role, size, rates)
        return sum(cost * work[name] for name, cost in self.costs[role].items())

    def steps_of_workers(self, size: Size) -> float:
        """Return the steps a second at which all workers are busy all the time."""
        work = _amounts("rlx", size, self.rates(size, 1.0))
        return size.servers / sum(seconds * work[name] for name, seconds in self.of_worker.items())

    def steps_of_this_machine(self, size: Size) -> float:
        """Return the steps a second where all roles share this machine's cores."""
        one = self.rates(size, 1.0)
        all_cores = self.cores_of_machine / sum(self.cores(role, size, one) for role in ROLES)
        return min(all_cores, self.steps_of_workers(size))

    def limits_of_a_cluster(self, size: Size, environment_s: float) -> dict[str, float]:
        """Return the steps a second at which each part would be busy all the time.

        Each RLX server has a machine with one worker, each shard has a core, and the balancer has
        one. An environment needs ``environment_s`` for a step that is answered at once.
        """
        one = {role: self.cores(role, size, self.rates(size, 1.0)) for role in ROLES}
        limits = {
            "environments": size.connections * size.environments / environment_s,
            "balancer": 1.0 / one["balancer"],
            "rlx": self.steps_of_workers(size),
        }
        if size.learns:
            limits["shards"] = size.shards / one["shards"]
        return limits


def fitted(rows: Sequence[Row]) -> Model:
    """Return the model of measured rows."""
    learning = [row for row in rows if row.size.learns]
    of_one = [row for row in rows if row.size.servers == 1]
    return Model(
        {role: _costs(role, rows, [row.cores[role] for row in rows]) for role in ROLES},
        _costs("rlx", of_one, np.ones(len(of_one))),
        PowerLaw.fitted(
            [[row.size.connections / row.size.servers] for row in rows],
            [row.messages / row.batches for row in rows],
        ),
        PowerLaw.fitted(
            [
                [
                    row.size.environments,
                    row.size.connections / row.size.servers,
                    row.size.shards,
                ]
                for row in learning
            ],
            [row.steps / row.updates for row in learning],
        ),
        max(sum(row.cores.values()) for row in rows),
    )


def rates_of(row: Row) -> dict[str, float]:
    """Return what happened in a second."""
    return {
        "steps": row.steps,
        "messages": row.messages,
        "batches": row.batches,
        "updates": row.updates,
    }


def _amounts(role: str, size: Size, rates: Rates) -> dict[str, float]:
    return {name: work(size, rates) for name, work in _WORK[role].items()}


def _costs(role: str, rows: Sequence[Row], used: npt.ArrayLike) -> dict[str, float]:
    """Return what each work of a role costs, given what each row used in a second."""
    names = list(_WORK[role])
    design = np.array([list(_amounts(role, row.size, rates_of(row)).values()) for row in rows])
    # Columns differ by orders of magnitude: a byte costs less than a step.
    relative = design / np.asarray(used, float)[:, None]
    scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
    costs, _ = nnls(relative / scale, np.ones(len(rows)))
    return dict(zip(names, map(float, costs / scale), strict=True))
