"""What a training costs, by role: fitted from measured sizes, it says what others would reach.

Each role's use of processors is a sum of what it does, times what that costs:

- ``clients``: messages, steps, updates, and bytes of updates; of those that share processes,
  messages and updates;
- ``balancer``: connections, messages, evaluations (what is answered together wakes it once), and
  updates;
- ``rlx``: connections, messages, steps, multiplications by parameters, evaluations of the network
  (batches), updates, and bytes of updates. An evaluation costs more beside each further server on
  the machine, whose worker takes caches and cores from it;
- ``shards``: slices of updates, and their bytes.

An update costs the roles without a part in it, too: it takes their caches. A worker has a call more
for each further shard.

Costs are seconds of one core, not negative, by least squares of relative errors (each row counts as
much, whatever its size). How many messages an evaluation has, and how many steps an update, grows
with the connections of a worker, with the environments on each, and with the shards, for which an
update takes longer: power laws, fitted likewise.

What a connection costs that waits is found by rows of hundreds of connections that offer a step now
and then; without such rows it is taken to be nothing. MiB of an RLX server are fitted to the rows
of one server, by what it holds.

A worker does one thing at a time, and waits for the answers of the shards and for its clients. What
its work takes of its time is fitted to the rows of one server, whose worker is what limits them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scale_rows import ROLES, Row, Size
from scipy.optimize import nnls

_BYTES = 4

#: The kernel counts processors' time in hundredths of a second: less than this is not told apart.
_LEAST = 0.005

#: Of an update: the gradient, and the values that come back.
_DIRECTIONS = 2

#: How often a step is multiplied by each parameter: when it is evaluated, and where it is learnt
#: from, forwards and, twice, backwards.
_EVALUATED, _LEARNT = 1, 3

#: The role of clients that share processes, which are another program than the others.
_SHARED_CLIENTS = "shared clients"

#: By role, what it does in a second, given a size and the rates of messages, batches and updates.
Rates = Mapping[str, float]
_WORK: Mapping[str, Mapping[str, Callable[[Size, Rates], float]]] = {
    "clients": {
        "message": lambda size, rates: rates["messages"],
        "step": lambda size, rates: rates["steps"],
        "update": lambda size, rates: rates["updates"],
        "byte": lambda size, rates: rates["updates"] * bytes_of(size),
    },
    _SHARED_CLIENTS: {
        "message": lambda size, rates: rates["messages"],
        "update": lambda size, rates: rates["updates"],
    },
    "balancer": {
        "connection": lambda size, rates: float(size.connections),
        "message": lambda size, rates: rates["messages"],
        "batch": lambda size, rates: rates["batches"],
        "update": lambda size, rates: rates["updates"],
    },
    "rlx": {
        "connection": lambda size, rates: float(size.connections),
        "message": lambda size, rates: rates["messages"],
        "step": lambda size, rates: rates["steps"],
        "multiplication": lambda size, rates: rates["steps"] * multiplications_of(size),
        "batch": lambda size, rates: rates["batches"],
        "batch beside another server": lambda size, rates: rates["batches"] * (size.servers - 1),
        "update": lambda size, rates: rates["updates"],
        "byte": lambda size, rates: rates["updates"] * bytes_of(size),
        "further slice": lambda size, rates: rates["updates"] * (size.shards - 1),
    },
    "shards": {
        "slice": lambda size, rates: rates["updates"] * size.shards,
        "byte": lambda size, rates: rates["updates"] * bytes_of(size),
    },
}


#: What is the same in each second, however many steps there are.
_HELD = "connection"


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
    #: MiB of an RLX server, by what it holds.
    memory: Mapping[str, float]
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
        costed = _costed_as(role, size)
        work = _amounts(costed, size, rates)
        return sum(self.costs[costed][name] * amount for name, amount in work.items())

    def steps_of_workers(self, size: Size) -> float:
        """Return the steps a second at which all workers are busy all the time."""
        work = _amounts("rlx", size, self.rates(size, 1.0))
        a_step = sum(seconds * work[name] for name, seconds in self.of_worker.items())
        return max(0.0, size.servers - self._held("rlx", size)) / a_step

    def steps_of_this_machine(self, size: Size) -> float:
        """Return the steps a second where all roles share this machine's cores."""
        return min(self._steps_of(ROLES, size, self.cores_of_machine), self.steps_of_workers(size))

    def mib_of_a_server(self, size: Size) -> float:
        """Return the MiB of each RLX server, alone on its machine."""
        held = _held_by_a_server(size)
        return sum(mib * held[name] for name, mib in self.memory.items())

    def limits_of_a_cluster(self, size: Size, environment_s: float) -> dict[str, float]:
        """Return the steps a second at which each part would be busy all the time.

        Each RLX server has a machine with one worker, as in the rows of one server, each shard has
        a core, and the balancer has one. An environment needs ``environment_s`` for a step that is
        answered at once.
        """
        limits = {
            "environments": size.connections * size.environments / environment_s,
            "balancer": self._steps_of(["balancer"], size, 1.0),
            "rlx": self.steps_of_workers(size),
        }
        if size.learns:
            limits["shards"] = self._steps_of(["shards"], size, size.shards)
        return limits

    def _steps_of(self, roles: Sequence[str], size: Size, cores: float) -> float:
        """Return the steps a second at which roles use so many cores together.

        Infinitely many where a step costs too little to be measured.
        """
        held = sum(self._held(role, size) for role in roles)
        one = self.rates(size, 1.0)
        a_step = sum(self.cores(role, size, one) for role in roles) - held
        return max(0.0, cores - held) / a_step if a_step > 0 else math.inf

    def _held(self, role: str, size: Size) -> float:
        """Return the cores that a role uses while no step is made."""
        return self.costs[_costed_as(role, size)][_HELD] * size.connections


def fitted(rows: Sequence[Row]) -> Model:
    """Return the model of measured rows."""
    busy = [row for row in rows if not row.size.rate]
    learning = [row for row in busy if row.size.learns]
    of_one = [row for row in rows if row.size.servers == 1]
    costs = _costs(rows)
    return Model(
        costs,
        _of_worker([row for row in busy if row.size.servers == 1], costs["rlx"][_HELD]),
        PowerLaw.fitted(
            [[row.size.connections / row.size.servers] for row in busy],
            [row.messages / row.batches for row in busy],
        ),
        PowerLaw.fitted(
            [
                [row.size.environments, row.size.connections / row.size.servers, row.size.shards]
                for row in learning
            ],
            [row.steps / row.updates for row in learning],
        ),
        _fitted(
            [_held_by_a_server(row.size) for row in of_one], [row.mib["rlx"] for row in of_one]
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


def _held_by_a_server(size: Size) -> dict[str, float]:
    """Return what an RLX server holds."""
    return {
        "server": 1.0,
        "learning": float(size.learns),
        "connection": size.connections / size.servers,
        "environment": size.connections * size.environments / size.servers,
        "parameter": float(size.parameters),
    }


def _amounts(role: str, size: Size, rates: Rates) -> dict[str, float]:
    return {name: work(size, rates) for name, work in _WORK[role].items()}


def _costed_as(role: str, size: Size) -> str:
    """Return whose costs a role has."""
    return _SHARED_CLIENTS if role == "clients" and size.shares_client_processes else role


def _costs(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return what each work costs of each role that was measured."""
    costs = {}
    tells_waiting_apart = any(row.size.rate for row in rows)
    for costed in _WORK:
        role = "clients" if costed == _SHARED_CLIENTS else costed
        those = [row for row in rows if _costed_as(role, row.size) == costed]
        if not those:
            continue
        amounts = [_amounts(costed, row.size, rates_of(row)) for row in those]
        if not tells_waiting_apart:
            amounts = list(map(_without_held, amounts))
        costs[costed] = {_HELD: 0.0, **_fitted(amounts, [row.cores[role] for row in those])}
    return costs


def _without_held(amounts: Mapping[str, float]) -> dict[str, float]:
    return {name: amount for name, amount in amounts.items() if name != _HELD}


def _of_worker(rows: Sequence[Row], held: float) -> dict[str, float]:
    """Return what each work takes of a worker's time, of which connections hold some."""
    amounts = [_without_held(_amounts("rlx", row.size, rates_of(row))) for row in rows]
    return _fitted(amounts, [1.0 - held * row.size.connections for row in rows])


def _fitted(amounts: Sequence[Mapping[str, float]], used: npt.ArrayLike) -> dict[str, float]:
    """Return what one of each costs, given the amounts of each row and what it used."""
    names = list(amounts[0])
    design = np.array([list(each.values()) for each in amounts])
    # Columns differ by orders of magnitude: a byte costs less than a step.
    unit = np.maximum(used, _LEAST)
    relative = design / unit[:, None]
    scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
    costs, _ = nnls(relative / scale, used / unit)
    return dict(zip(names, map(float, costs / scale), strict=True))
