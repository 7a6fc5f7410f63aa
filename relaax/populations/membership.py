"""A policy as a member of a population, at its parameter server."""

import json
import secrets
import threading
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from relaax.checkpoints import BlobStore
from relaax.checkpoints.store import read_json
from relaax.errors import BridgeError, CheckpointError
from relaax.telemetry.metrics import EPISODE_RETURN, episode_number

#: The file beside the checkpoints with the last order, and what was done of it.
FILE = "membership.json"

#: So many of the latest episodes of a stream are kept, and so many streams.
KEPT_EPISODES, MOST_STREAMS = 10_000, 64


class EvaluatedEpisode(NamedTuple):
    """An episode that one version of the policy has played."""

    version: int
    episode_return: float


@dataclass(frozen=True)
class Order:
    """Parameters and hyperparameters that a learner goes on with; number 0: there is none."""

    number: int = 0
    #: Keys of the algorithm's section, in the place of those that the learner has begun with.
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    #: The member whose parameters are taken, and where its learner's checkpoints are.
    source: str = ""
    checkpoints: str = ""


@dataclass(frozen=True)
class Done:
    """An order that a learner has carried out, or has refused."""

    number: int = 0
    #: Its first version with the new parameters, and the version of the source that they were.
    version: int = 0
    source_version: int = 0
    #: Why it goes on as it was before the order; "" where it has carried it out.
    refused: str = ""


class WrongNumber(BridgeError):
    """An order that does not follow the last one, or one that was not given."""


class Membership:
    """Keeps orders in ``store``, and episodes in memory. For many threads."""

    def __init__(self, store: BlobStore | None) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._episodes: dict[str, deque[EvaluatedEpisode]] = {}
        self._counts: dict[str, int] = {}
        #: Another one after each start: episodes are counted from 0 then.
        self.incarnation = secrets.randbits(63) + 1
        #: The last order, how it has ended, and the order that stays in force where it is refused.
        self.order, self.done, self._before = self._stored()

    def note(self, name: str, version: int, y: float) -> None:
        """Take a number of an evaluated episode, by its ``EpisodeNumber``; returns are kept."""
        streams, _, name = episode_number(name)
        if name != EPISODE_RETURN:
            return
        episode = EvaluatedEpisode(version, y)
        with self._lock:
            for stream in streams.split(","):
                if stream in self._counts or len(self._counts) < MOST_STREAMS:
                    kept = self._episodes.setdefault(stream, deque(maxlen=KEPT_EPISODES))
                    kept.append(episode)
                    self._counts[stream] = self._counts.get(stream, 0) + 1

    def episodes(self, stream: str, after: int) -> tuple[int, list[EvaluatedEpisode]]:
        """Return how many there were, and those behind the first ``after`` that are kept."""
        with self._lock:
            count = self._counts.get(stream, 0)
            new = min(max(count - after, 0), KEPT_EPISODES)
            return count, list(self._episodes.get(stream, ()))[-new:] if new else []

    def give(self, order: Order) -> None:
        """Keep an order; WrongNumber if its number does not follow the last one's.

        CheckpointError where it cannot be stored: then it is not given.
        """
        if self._store is None:
            raise CheckpointError("orders are kept beside checkpoints: give --checkpoint-dir")
        with self._lock:
            if order.number != self.order.number + 1:
                raise WrongNumber(f"order {order.number} does not follow order {self.order.number}")
            self._put(order, self.done, self.order)
            self.order, self._before = order, self.order

    def note_done(self, done: Done) -> None:
        """Keep how a learner goes on; WrongNumber if it is not by the last order.

        Where it has refused that, its number stays, with the hyperparameters of before.
        """
        with self._lock:
            if done.number != self.order.number:
                raise WrongNumber(f"order {done.number} is not the last one, {self.order.number}")
            order = self.order
            if done.refused:
                order = Order(order.number, self._before.hyperparameters)
            self._put(order, done, order)
            self.order, self.done, self._before = order, done, order

    def _put(self, order: Order, done: Done, before: Order) -> None:
        if self._store is not None:
            content = {"order": asdict(order), "done": asdict(done), "before": asdict(before)}
            self._store.put(FILE, json.dumps(content, indent=1).encode())

    def _stored(self) -> tuple[Order, Done, Order]:
        found = None if self._store is None else read_json(self._store, FILE, _read)
        return found or (Order(), Done(), Order())


def _read(content: Any) -> tuple[Order, Done, Order]:
    order, before = (Order(**content[key]) for key in ("order", "before"))
    return order, Done(**content["done"]), before
