"""The manager of ``vanilla_pbt``: it looks at members' episodes, and gives orders to learners."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from relaax.errors import BridgeError, ConfigurationError, ParameterServerAway
from relaax.populations.members import Members
from relaax.populations.membership import Done, Order
from relaax.populations.record import ExploitRow, PopulationRecord
from relaax.populations.vanilla_pbt import Exploit, VanillaPopulation

_log = logging.getLogger(__name__)


class VanillaPbtManager:
    """Carries out what ``population`` decides; ``advance`` is called once a second or so.

    Orders are at the parameter servers of the members, which keep them: a manager that starts again
    asks for them, and goes on with what ``record`` has.
    """

    interval_s = 1.0

    def __init__(
        self, population: VanillaPopulation, members: Members, record: PopulationRecord
    ) -> None:
        self._population = population
        self._members = members
        self._places = members.places
        self._record = record
        #: By member: its last order that was carried out.
        self._known: dict[str, int] = {}
        for name, version in record.ready_at.items():
            population.members[name].ready_at = version

    def advance(self) -> None:
        """Take what is new of each member, and give orders; members that are away are left out."""
        self._members.each(self._look_at)
        if len(self._known) == len(self._places):  # orders of before are known
            exploits = self._population.exploits()
            self._remember(exploits)
            for exploit in exploits:
                self._begin(exploit)

    def write(self) -> None:
        """Write the record, and print how good each member is, the best first."""
        self._record.write()
        known = [(name, each) for name, each in self._population.members.items() if each.returns]
        known.sort(key=lambda pair: -pair[1].mean_return)
        returns = ", ".join(f"{name} {each.mean_return:.4g}" for name, each in known)
        said = [f"mean returns: {returns}" if returns else "", self._population.missing()]
        if any(said):
            print("; ".join(filter(None, said)), flush=True)

    def numbers(self) -> dict[str, float]:
        """Return what has been done, and how good each member is, by name."""
        members = self._population.members
        return {
            "exploits": len(self._record.rows),
            "members waiting": sum(member.is_waiting for member in members.values()),
            **{
                f"mean return of {name}": member.mean_return
                for name, member in members.items()
                if member.returns
            },
        }

    def _look_at(self, name: str) -> None:
        member, place = self._population.members[name], self._places[name]
        order, done = place.stub.membership()
        if self._known.get(name) != order.number and order.number == done.number:
            if done.refused:
                self._refused(name, order, done.refused)
            elif order.number > 0:
                self._went_on(name, order, done)
            self._known[name] = order.number
        elif order.number != done.number:
            member.source = order.source
            self._known.setdefault(name, done.number)
        self._population.note(name, self._members.new_episodes(name))
        if member.returns:
            self._record.note_return(name, member.version, member.mean_return)

    def _refused(self, name: str, order: Order, reason: str) -> None:
        """Take note of an exploit that a learner cannot carry out."""
        member = self._population.members[name]
        member.source = ""
        if order.hyperparameters:  # those of its last exploit, if there was one
            member.hyperparameters = order.hyperparameters
        if self._record.begun.pop(name, None) is not None:
            _log.warning("%s goes on as it is: %s", name, reason)

    def _went_on(self, name: str, order: Order, done: Done) -> None:
        """Take note of an exploit that a learner has carried out."""
        self._population.members[name].hyperparameters = order.hyperparameters
        self._population.went_on(name, done.version)
        if order.number > self._record.last_number(name):
            target_return, source_return = self._record.begun.pop(name, (None, None))
            self._record.note_exploit(
                ExploitRow(
                    order.number,
                    name,
                    done.version,
                    order.source,
                    done.source_version,
                    order.hyperparameters,
                    target_return,
                    source_return,
                )
            )
            print(
                f"{name}: version {done.version} has the parameters of {order.source}, of its "
                f"version {done.source_version}",
                flush=True,
            )

    def _remember(self, exploits: Sequence[Exploit]) -> None:
        """Keep what a manager that starts again has to know, before any order is given."""
        ready_at = {name: each.ready_at for name, each in self._population.members.items()}
        if exploits or ready_at != self._record.ready_at:
            self._record.ready_at = ready_at
            self._record.begun |= {
                each.target: (each.target_return, each.source_return) for each in exploits
            }
            self._record.keep_state()

    def _begin(self, exploit: Exploit) -> None:
        """Give the order of an exploit; the member goes on as it is where that fails."""
        name, source = exploit.target, self._places[exploit.source]
        member = self._population.members[name]
        order = Order(
            self._known[name] + 1, exploit.hyperparameters, exploit.source, source.checkpoints
        )
        try:
            self._places[name].require_allowed(exploit.hyperparameters)
            self._places[name].stub.give(order)
        except ParameterServerAway as error:
            member.source = ""  # the next look at it finds the order if it has come
            _log.warning("%s goes on as it is, unless the order has come: %s", name, error)
        except (BridgeError, ConfigurationError) as error:
            member.source = ""
            _log.warning("%s goes on as it is: %s", name, error)
        else:
            print(described(exploit), flush=True)


def described(exploit: Exploit) -> str:
    """Return an exploit in words, with the hyperparameters of the source that change."""
    old, new = _flat(exploit.copied), _flat(exploit.hyperparameters)
    changes = [
        f"{key} {_shown(old.get(key))} -> {_shown(value)}"
        for key, value in new.items()
        if old.get(key) != value
    ]
    return (
        f"{exploit.target} (mean return {exploit.target_return:.4g} ± {exploit.target_error:.2g}) "
        f"takes the parameters of {exploit.source} ({exploit.source_return:.4g} ± "
        f"{exploit.source_error:.2g}): " + (", ".join(changes) or "all hyperparameters as they are")
    )


def _flat(keys: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in keys.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{key}.")
        else:
            found[before + key] = value
    return found


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
