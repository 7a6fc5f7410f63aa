"""The manager of PSRO: oracles learn, versions play one another, and mixtures are solved for."""

import csv
import io
import json
import logging
import time
from collections.abc import Callable, Generator

from relaax.checkpoints import BlobStore
from relaax.checkpoints.store import read_json
from relaax.configuration.population_rules import PSRO_TAG, Psro
from relaax.errors import BridgeError, NoSuchVersion
from relaax.populations.cells import Turn, turns
from relaax.populations.members import Members
from relaax.populations.psro import MetaGame, table
from relaax.populations.record import keep
from relaax.populations.stub import REFRESH_S
from relaax.processes.identifiers import LATEST
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: The names of the files: what a manager goes on with, the payoff matrix with the last mixtures,
#: and a line for each population.
STATE, PAYOFFS, TABLE = "psro.json", "payoffs.csv", "psro.csv"

#: The name of weights in metadata.
WEIGHT = "psro"


class PsroManager:
    """Carries out PSRO for two policies, of which the first is the row player.

    What it knows is in ``store``: a manager that starts again goes on with it. ``clock`` returns
    seconds of a stopwatch.
    """

    interval_s = 0.2

    def __init__(
        self,
        rule: Psro,
        members: Members,
        store: BlobStore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rule = rule
        self._members = members
        self._names = list(members.places)
        self._stubs = [each.stub for each in members.places.values()]
        self._store = store
        self._clock = clock
        self._complaint = RepeatedWarning(_log)
        self._game = self._stored()
        self._steps: Generator[None, None, None] = self._course()

    def advance(self) -> None:
        """Go on as far as there are episodes; a parameter server that is away is waited for."""
        try:
            next(self._steps)
            self._complaint.forget()
        except (BridgeError, NoSuchVersion) as error:
            self._complaint.say(f"the population waits: {error}")
            self._steps = self._course()

    def write(self) -> None:
        """Do nothing: all is written when it is known."""

    def numbers(self) -> dict[str, float]:
        """Return how large the populations are, and the last solution of their game."""
        found: dict[str, float] = {"versions": len(self._game.versions[0])}
        for newest in self._game.solutions[-1:]:
            found |= {"value": newest.value, "exploitability": newest.exploitability}
        return found

    def _course(self) -> Generator[None, None, None]:
        """Yield while others are to do something."""
        yield from self._settled()
        while True:
            if not self._game.versions[0]:
                self._grow()
                for stub, versions in zip(self._stubs, self._game.versions, strict=True):
                    stub.set_numbers({versions[0]: {WEIGHT: 1.0}})
            yield from self._play()
            if len(self._game.solutions) < len(self._game.versions[0]):
                self._solve()
            self._set_weights()
            if self._game.began is None:
                self._game.began = self._newest()
                self._keep()
            weights_end = self._clock() + REFRESH_S
            while not self._have_learnt(self._game.began):
                yield
                if self._clock() >= weights_end:
                    self._set_weights()
                    weights_end += REFRESH_S
            self._grow()

    def _settled(self) -> Generator[None, None, None]:
        """Pass over episodes of a manager before.

        Each player in turn plays a version that none of them has, outside of its population where
        there is one: an episode of it says that all earlier ones are reported.
        """
        for name in self._names:
            self._members.new_episodes(name)
        if not self._game.returns:
            return
        for player, versions in enumerate(self._game.versions):
            found = self._stubs[player].versions()
            others = [each for each in found.numbers if each not in versions]
            tagged = found.tags.get(PSRO_TAG)
            unplayed = [each for each in (*versions, *others) if each != tagged]
            if unplayed:
                yield from self._episodes(player, unplayed[-1], 1)

    def _newest(self) -> list[int]:
        return [stub.versions().tags[LATEST] for stub in self._stubs]

    def _have_learnt(self, began: list[int]) -> bool:
        return all(
            now - before >= self._rule.oracle_updates
            for now, before in zip(self._newest(), began, strict=True)
        )

    def _grow(self) -> None:
        """Take the newest version of each policy into its population."""
        place = len(self._game.versions[0])
        if any(LATEST not in stub.versions().tags for stub in self._stubs):
            raise NoSuchVersion("the first version of a policy is not there yet")
        new = [stub.tag(LATEST, f"{PSRO_TAG}_{place}") for stub in self._stubs]
        for versions, version in zip(self._game.versions, new, strict=True):
            versions.append(version)
        self._game.began = None
        self._keep()

    def _play(self) -> Generator[None, None, None]:
        """Let the cells be played that were not."""
        missing = self._game.missing()
        if not missing:
            return
        tags = [stub.versions().tags for stub in self._stubs]
        for stub, versions, tagged in zip(self._stubs, self._game.versions, tags, strict=True):
            if PSRO_TAG not in tagged:  # nothing was played yet
                tagged[PSRO_TAG] = stub.tag(versions[0], PSRO_TAG)
        places = []
        for player, (versions, tagged) in enumerate(zip(self._game.versions, tags, strict=True)):
            if tagged[PSRO_TAG] not in versions:  # games with it may be under way
                yield from self._episodes(player, versions[0], 1)
                tagged[PSRO_TAG] = versions[0]
            places.append(versions.index(tagged[PSRO_TAG]))
        counts = [len(each) for each in self._game.versions]
        first = (places[0], places[1])
        for turn in turns(first, missing, counts, self._rule.games_per_cell):
            yield from self._take(turn)

    def _take(self, turn: Turn) -> Generator[None, None, None]:
        version = self._game.versions[turn.player][turn.version]
        returns = yield from self._episodes(turn.player, version, turn.episodes)
        if turn.cell is not None:
            sign = 1 if turn.player == 0 else -1
            self._game.returns[turn.cell] = [sign * each for each in returns]
            self._keep()

    def _episodes(
        self, player: int, version: int, count: int
    ) -> Generator[None, None, list[float]]:
        """Give a player's tag to a version; return the returns of so many episodes of it."""
        self._stubs[player].tag(version, PSRO_TAG)
        returns: list[float] = []
        while len(returns) < count:
            yield
            new = {name: self._members.new_episodes(name) for name in self._names}
            episodes = new[self._names[player]]
            returns += [each.episode_return for each in episodes if each.version == version]
        return returns

    def _solve(self) -> None:
        found = self._game.solve(self._rule.meta_solver)
        self._keep()
        text, rows = io.StringIO(), table(self._game, self._names)
        csv.writer(text, lineterminator="\n").writerows(rows)
        keep(self._store, PAYOFFS, text.getvalue())
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["population", *self._names, "value", "exploitability"])
        for place, each in enumerate(self._game.solutions):
            versions = [own[place] for own in self._game.versions]
            writer.writerow(
                [place + 1, *versions, f"{each.value:.4f}", f"{each.exploitability:.4f}"]
            )
        keep(self._store, TABLE, text.getvalue())
        count = len(self._game.versions[0])
        print(
            f"a population of {count}: value {found.value:.4g}, "
            f"exploitability {found.exploitability:.4g}",
            flush=True,
        )

    def _set_weights(self) -> None:
        """Let the oracles learn against the last mixtures."""
        mixtures = self._game.solutions[-1].mixtures
        for stub, versions, mixture in zip(self._stubs, self._game.versions, mixtures, strict=True):
            weights: dict[int, float] = {}
            for version, share in zip(versions, mixture, strict=True):
                weights[version] = weights.get(version, 0.0) + share
            stub.set_numbers({of: {WEIGHT: share} for of, share in weights.items()})

    def _keep(self) -> None:
        keep(self._store, STATE, json.dumps(self._game.written()))

    def _stored(self) -> MetaGame:
        return read_json(self._store, STATE, MetaGame.read) or MetaGame()
