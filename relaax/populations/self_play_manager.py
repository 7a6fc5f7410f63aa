"""The manager of a policy that plays against its past versions."""

import csv
import io
import json
import logging
from dataclasses import asdict
from typing import Any

from relaax.checkpoints import BlobStore
from relaax.checkpoints.store import read_json
from relaax.configuration.population_rules import SelfPlay
from relaax.errors import BridgeError, CheckpointError
from relaax.populations.members import Members
from relaax.populations.self_play import Opponent, SelfPlayLadder
from relaax.processes.identifiers import is_time_tag
from relaax.telemetry.metrics import Metrics

_log = logging.getLogger(__name__)

#: The names of the files: what a manager goes on with, and a line for each tagged version.
STATE, TABLE = "self_play.json", "self_play.csv"

#: Names of numbers in the metadata of a version, and of a metric.
WEIGHT, ELO = "pfsp", "elo"

#: A weight is set anew when it has changed by so much.
_CHANGE = 0.005

_COLUMNS = ("version", "tag", "elo", "win_rate", "pfsp", "games")


class SelfPlayManager:
    """Sets weights and ratings of a policy's tagged versions; ``members`` has this policy alone.

    What it knows is in ``store`` before anything is set, together with the count of games: after
    ``kill -9`` each game counts once, unless the parameter server has been started again, too.
    """

    interval_s = 1.0

    def __init__(
        self, rule: SelfPlay, members: Members, metrics: Metrics, store: BlobStore
    ) -> None:
        self._members = members
        self._metrics = metrics
        self._store = store
        self._ladder = SelfPlayLadder(rule)
        self._is_new = False
        #: By version: the weight that it has in its metadata.
        self._set: dict[int, float] = {}
        self._restore()

    def advance(self) -> None:
        """Take new games and tags, and set what has changed."""
        self._members.each(self._look_at)

    def write(self) -> None:
        """Write the table; a failure is a warning."""
        ladder, text = self._ladder, io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for version, each in ladder.opponents.items():
            rate, weight = ladder.win_rate(version), ladder.weight(version)
            numbers = (f"{each.elo:.1f}", f"{rate:.4f}", f"{weight:.4f}", each.played)
            writer.writerow((version, each.tag, *numbers))
        self._put(TABLE, text.getvalue())

    def _look_at(self, name: str) -> None:
        stub = self._members.places[name].stub
        before = dict(self._members.seen)
        episodes = self._members.new_episodes(name)
        try:
            tags = stub.versions().tags
        except BridgeError:
            self._members.seen.update(before)  # they come again
            raise
        known = set(self._ladder.opponents)
        self._ladder.note_tags({of: tag for tag, of in tags.items() if is_time_tag(tag)})
        count = self._ladder.note(episodes)
        if count or known != set(self._ladder.opponents) or before != self._members.seen:
            self._keep()
        if count:
            self._metrics.scalar(ELO, self._ladder.elo)
        weights = {version: self._ladder.weight(version) for version in self._ladder.opponents}
        changed = {
            version: {WEIGHT: weight, ELO: self._ladder.opponents[version].elo}
            for version, weight in weights.items()
            if version not in self._set or abs(weight - self._set[version]) > _CHANGE
        }
        if changed:
            stub.set_numbers(changed)
            self._set |= {version: weights[version] for version in changed}

    def _keep(self) -> None:
        state = {
            "elo": self._ladder.elo,
            "seen": self._members.seen,
            "opponents": {v: asdict(each) for v, each in self._ladder.opponents.items()},
        }
        self._put(STATE, json.dumps(state))

    def _put(self, name: str, text: str) -> None:
        try:
            self._store.put(name, text.encode())
        except CheckpointError as error:
            _log.warning("the record of the games is not written: %s", error)

    def _restore(self) -> None:
        """Go on with what a manager before has kept; CheckpointError if it cannot be read."""
        found = read_json(self._store, STATE, _read)
        if found is not None:
            self._ladder.elo, self._ladder.opponents, seen = found
            self._members.seen.update(seen)


def _read(state: Any) -> tuple[float, dict[int, Opponent], dict[str, tuple[int, int]]]:
    """Return the rating, the opponents by version, and which episodes of members were seen."""
    opponents = {int(version): Opponent(**each) for version, each in state["opponents"].items()}
    seen = {name: (int(first), int(count)) for name, (first, count) in state["seen"].items()}
    return float(state["elo"]), opponents, seen
