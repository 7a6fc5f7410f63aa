"""The manager of learners that play against past versions: self-play, and leagues."""

import csv
import io
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from relaax.checkpoints import BlobStore
from relaax.checkpoints.store import read_json
from relaax.errors import BridgeError
from relaax.populations.exploiter import Exploiter
from relaax.populations.league import Games, Ladder, Opponent
from relaax.populations.members import Members
from relaax.populations.record import TABLE as RESETS_TABLE
from relaax.populations.record import ExploitRow, keep, table
from relaax.populations.stub import REFRESH_S, MemberStub
from relaax.processes.identifiers import LATEST, is_time_tag
from relaax.telemetry.metrics import Metrics

#: Names of numbers in the metadata of a version, and of metrics. In a league the name of a weight
#: goes on with the learner's, ``pfsp_main``, and that of a win rate with the newest opponent's,
#: ``win_rate/main``.
WEIGHT, ELO, WIN_RATE = "pfsp", "elo", "win_rate"

#: A weight is set anew when it has changed by so much.
_CHANGE = 0.005


class LeagueManager:
    """Sets weights and ratings of the tagged versions of all policies, and resets exploiters.

    ``games`` has for each learner the policies with its stream, to which their versions report.
    ``metrics`` are those of each policy's training. The files in ``store`` have the ``name``. What
    the manager knows is there before anything is set, together with the count of games: after
    ``kill -9`` each game counts once, unless the parameter server has been started again, too.
    ``clock`` returns seconds of a stopwatch.
    """

    interval_s = 1.0

    def __init__(
        self,
        ladder: Ladder,
        games: Mapping[str, Members],
        metrics: Mapping[str, Metrics],
        store: BlobStore,
        name: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._ladder = ladder
        self._games = games
        self._metrics = metrics
        self._store = store
        self._state, self._table = f"{name}.json", f"{name}.csv"
        #: By learner: the ending of its numbers' names.
        self._suffixes = {each: f"_{each}" if len(games) > 1 else "" for each in games}
        #: By learner and policy: the weights that are in the metadata, by version, and since when.
        self._set: dict[tuple[str, str], dict[int, tuple[float, float]]] = {}
        self._exploiters = {
            each: Exploiter(
                each,
                rule.exploits,
                ladder,
                games[each].places[each],
                games[each].places[rule.exploits],
                metrics[each],
            )
            for each, rule in ladder.learners.items()
            if rule.exploits is not None
        }
        self._restore()

    def advance(self) -> None:
        """Take new games and tags, set what has changed, and let exploiters begin anew."""
        for learner, members in self._games.items():
            members.each(partial(self._look_at, learner))

    def write(self) -> None:
        """Write the table, and one of exploiters that began anew; a failure is a warning."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self._columns(), lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(self._rows())
        keep(self._store, self._table, text.getvalue())
        if self._exploiters:
            resets = [row for each in self._exploiters.values() for row in each.resets]
            keep(self._store, RESETS_TABLE, table(resets))

    def numbers(self) -> dict[str, float]:
        """Return the rating of each policy, and how many tagged versions it has."""
        ladder = self._ladder
        return {
            **{f"elo of {policy}": each.elo for policy, each in ladder.newest.items()},
            **{f"versions of {policy}": len(each) for policy, each in ladder.tagged.items()},
        }

    def _columns(self) -> list[str]:
        policy = ["policy"] if len(self._games) > 1 else []
        numbers = (WIN_RATE, WEIGHT, "games")
        each = (f"{name}{suffix}" for suffix in self._suffixes.values() for name in numbers)
        return [*policy, "version", "tag", ELO, *each]

    def _rows(self) -> Iterator[dict[str, object]]:
        """Yield a line for each tagged version of each policy; in a league for the newest, too."""
        for policy, tagged in self._ladder.tagged.items():
            for version, each in tagged.items():
                yield {"policy": policy, "version": version, **self._row(each)}
            if len(self._games) > 1:
                newest = self._row(self._ladder.newest[policy], is_drawn=False)
                yield {"policy": policy, "version": LATEST, **newest}

    def _row(self, opponent: Opponent, *, is_drawn: bool = True) -> dict[str, object]:
        row: dict[str, object] = {"tag": opponent.tag, ELO: f"{opponent.elo:.1f}"}
        for learner, suffix in self._suffixes.items():
            row[f"{WIN_RATE}{suffix}"] = f"{self._ladder.win_rate(learner, opponent):.4f}"
            if is_drawn:
                row[f"{WEIGHT}{suffix}"] = f"{self._ladder.weight(learner, opponent):.4f}"
            row[f"games{suffix}"] = opponent.games.get(learner, Games()).played
        return row

    def _look_at(self, learner: str, policy: str) -> None:
        """Take new games of a policy's versions against a learner, and set its weights there."""
        exploiter = self._exploiters.get(learner)
        if exploiter is not None and exploiter.is_waiting is None:
            exploiter.ask()
        members, tagged = self._games[learner], self._ladder.tagged
        stub = members.places[policy].stub
        before, known = dict(members.seen), set(tagged[policy])
        episodes = members.new_episodes(policy)
        try:
            tags = stub.versions().tags
        except BridgeError:
            members.seen.update(before)  # they come again
            raise
        self._ladder.note_tags(policy, {of: tag for tag, of in tags.items() if is_time_tag(tag)})
        is_waiting = exploiter is not None and exploiter.is_waiting
        count = 0 if is_waiting else self._ladder.note(learner, policy, episodes)
        if count or known != set(tagged[policy]) or before != members.seen:
            self._keep()
        if count:
            self._tell(learner, policy)
        self._set_numbers(learner, policy, stub)
        if exploiter is not None and policy == learner:
            order = exploiter.order
            exploiter.advance()
            if exploiter.order != order:
                self._keep()

    def _tell(self, learner: str, policy: str) -> None:
        """Store as metrics how good both are now."""
        for name in {learner, policy}:
            self._metrics[name].scalar(ELO, self._ladder.newest[name].elo)
        if learner != policy:
            rate = self._ladder.win_rate(learner, self._ladder.newest[policy])
            self._metrics[learner].scalar(f"{WIN_RATE}/{policy}", rate)

    def _set_numbers(self, learner: str, policy: str, stub: MemberStub) -> None:
        """Set what has changed in the metadata of a policy's versions, or would expire there."""
        opponents, known = self._ladder.tagged[policy], self._set.setdefault((learner, policy), {})
        weights = {of: self._ladder.weight(learner, each) for of, each in opponents.items()}
        now = self._clock()
        changed = {
            of: weight
            for of, weight in weights.items()
            if of not in known
            or abs(weight - known[of][0]) > _CHANGE
            or now - known[of][1] >= REFRESH_S
        }
        if changed:
            name = f"{WEIGHT}{self._suffixes[learner]}"
            stub.set_numbers(
                {of: {name: weight, ELO: opponents[of].elo} for of, weight in changed.items()}
            )
            known |= {of: (weight, now) for of, weight in changed.items()}

    def _keep(self) -> None:
        ladder = self._ladder
        state = {
            "exploiters": {
                name: (each.order, each.since) for name, each in self._exploiters.items()
            },
            "resets": {
                name: [asdict(row) for row in each.resets]
                for name, each in self._exploiters.items()
            },
            "seen": {learner: members.seen for learner, members in self._games.items()},
            "newest": {policy: asdict(each) for policy, each in ladder.newest.items()},
            "tagged": {
                policy: {version: asdict(each) for version, each in versions.items()}
                for policy, versions in ladder.tagged.items()
            },
        }
        keep(self._store, self._state, json.dumps(state))

    def _restore(self) -> None:
        """Go on with what a manager before has kept; CheckpointError if it cannot be read."""
        read_json(self._store, self._state, self._take)

    def _take(self, state: Any) -> None:
        for learner, members in self._games.items():
            seen = state["seen"][learner].items()
            members.seen.update({name: (int(first), int(count)) for name, (first, count) in seen})
        for name, each in self._exploiters.items():
            each.order, each.since = map(int, state["exploiters"][name])
            kept = state.get("resets", {}).get(name, [])  # older files have none
            each.resets = [ExploitRow(**row) for row in kept]
        for policy in self._ladder.newest:
            self._ladder.newest[policy] = _opponent(state["newest"][policy])
            self._ladder.tagged[policy] = {
                int(version): _opponent(each) for version, each in state["tagged"][policy].items()
            }


def _opponent(state: Any) -> Opponent:
    games = {learner: Games(**each) for learner, each in state["games"].items()}
    return Opponent(state["tag"], float(state["elo"]), games)
