"""A worker's environments: their slots, their places among all that train, and their episodes."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base import EnvironmentInfo, EvaluatedPolicy
from relaax.errors import ProtocolError
from relaax.protocol.binary import Hello
from relaax.server.rlx_server.tally import WorkerRow
from relaax.server.rlx_server.worker.settings import seed_after
from relaax.steps import UNNAMED_AGENT, Flags, IntArray, Steps, Transitions, read_transitions
from relaax.telemetry.episode_numbers import (
    EPISODE_INFO,
    MOST_NUMBERS,
    environments_own,
    mistake_in_name,
)
from relaax.telemetry.interval_metrics import IntervalMetrics
from relaax.telemetry.metrics import (
    EPISODE_LENGTH,
    EPISODE_RETURN,
    EPISODE_REWARD,
    EVALUATION_REWARD,
    OF_CLIENT,
    OF_EVALUATING_CLIENT,
    STAGE,
    Metrics,
    store_evaluated,
)

FloatArray = npt.NDArray[np.float64]


class SlotPool:
    """Hands out the smallest numbers that are free, from 0 on."""

    def __init__(self) -> None:
        self._is_taken = np.zeros(0, np.bool_)

    def take(self, count: int) -> IntArray:
        """Return ``count`` free numbers: int64 [count], in order."""
        free, capacity = np.flatnonzero(~self._is_taken), len(self._is_taken)
        if len(free) < count:
            more = max(count - len(free), capacity)
            free = np.concatenate([free, np.arange(capacity, capacity + more)])
            self._is_taken = np.concatenate([self._is_taken, np.zeros(more, np.bool_)])
        taken = free[:count]
        self._is_taken[taken] = True
        return taken

    def give_back(self, numbers: IntArray) -> None:
        """Take back numbers."""
        self._is_taken[numbers] = False


class Environments:
    """Numbers environments: a slot in this worker, and a place among all that train.

    Without a ``row`` they do not train: then an environment's slot is its place.
    """

    def __init__(self, row: WorkerRow | None) -> None:
        self._row = row
        self._pool = SlotPool()
        #: How many environments there are.
        self.count = 0
        #: How many there have been.
        self._introductions = 0
        #: By slot; places are numbers of the row, which knows those in the training.
        self._places: IntArray = np.zeros(0, np.int64)

    def take(self, count: int) -> IntArray:
        """Return slots [count] that no environment has."""
        slots = self._pool.take(count)
        self.count += count
        return slots

    def give_back(self, slots: IntArray) -> None:
        """Free ``slots``, and their places."""
        self._pool.give_back(slots)
        self.count -= len(slots)
        if self._row is not None and len(self._places) > slots.max():  # else none was given
            self._row.places.give_back(self._places[slots])

    def introduced(self, slots: IntArray, hello: Hello, first_seed: int) -> list[EnvironmentInfo]:
        """Return the descriptions of a client's environments for agents, and give these places."""
        first = self._introductions
        self._introductions += hello.environments
        agents = hello.agent_names() or [UNNAMED_AGENT] * hello.environments
        return [
            EnvironmentInfo(
                name=hello.environment,
                observation_space=hello.observation_space,
                action_space=hello.action_space,
                number=number,
                seed=seed_after(first_seed, first + number),
                place=place,
                agent=agents[number],
            )
            for number, place in enumerate(self._placed(slots))
        ]

    def _placed(self, slots: IntArray) -> list[Callable[[], int]]:
        """Return, for each environment, a function that returns its place in the training."""
        row = self._row
        if row is None:
            return [lambda slot=slot: slot for slot in slots.tolist()]  # type: ignore[misc]
        places = row.places.take(len(slots))
        size = max(int(slots.max()) + 1, len(self._places))
        self._places = np.concatenate([self._places, np.zeros(size - len(self._places), np.int64)])
        self._places[slots] = places
        return [partial(row.places.in_training, place) for place in places.tolist()]


_NO_SCORES: FloatArray = np.zeros(0)

#: So much is left out of means, that the sum of all that comes within a second is finite.
_SUMMABLE = 1e290


class Ended(NamedTuple):
    """An episode that has ended."""

    reward: float
    length: int
    seconds: float
    #: The environment's own, by name.
    numbers: Mapping[str, float]


class NoEpisode(ProtocolError):
    """A reward came for a slot where no episode goes on."""

    def __init__(self, slot: int) -> None:
        super().__init__("a reward came before act: no episode is going on")
        self.slot = slot


class Episodes:
    """Rewards, steps and seconds of the episodes of all environments of a worker, by slot."""

    def __init__(
        self,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
        most_steps: int | None = None,
    ) -> None:
        self._most_steps = most_steps
        self._metrics = metrics
        self._means = IntervalMetrics(metrics, clock=clock)
        self._clock = clock
        self._is_running = np.zeros(0, np.bool_)
        self._rewards = np.zeros(0)
        self._lengths = np.zeros(0, np.int64)
        self._started_at = np.zeros(0)
        #: Of the environments' own, by slot and name.
        self._numbers: defaultdict[int, dict[str, float]] = defaultdict(dict)

    def open(self, slots: IntArray) -> None:
        """Make room for ``slots``, where no episode goes on."""
        size = max(int(slots.max()) + 1, len(self._is_running))
        for name in ("_is_running", "_rewards", "_lengths", "_started_at"):
            getattr(self, name).resize(size, refcheck=False)
        self._is_running[slots] = False
        self._forget_numbers(slots)

    def note(self, slot: int, name: str, y: float) -> None:
        """Take a number of the episode in ``slot``; the last one of its ``name`` counts.

        ProtocolError for a name that is not allowed, and for more than ``MOST_NUMBERS``.
        """
        if mistake := mistake_in_name(name):
            raise ProtocolError(f"{EPISODE_INFO}{name}: {mistake}")
        numbers = self._numbers[slot]
        if name not in {*numbers, STAGE} and len(environments_own(numbers)) >= MOST_NUMBERS:
            raise ProtocolError(f"an episode has more than {MOST_NUMBERS} numbers of its own")
        numbers[name] = y

    def read(self, slots: IntArray, flags: Flags, rewards: FloatArray) -> Transitions:
        """Return the flags' meaning; NoEpisode for a step outside of episodes. Changes nothing."""
        is_running = self._is_running[slots]
        transitions = read_transitions(slots, flags, rewards, is_running)
        if not is_running.all():
            idle = transitions.stepped[~self._is_running[transitions.stepped]]
            if len(idle):
                raise NoEpisode(int(idle[0]))
        if self._most_steps is not None:
            self._require_end(self._lengths[transitions.stepped], self._most_steps)
        return transitions

    def _require_end(self, lengths: IntArray, most: int) -> None:
        """Raise ProtocolError for a step more than an episode may have."""
        if len(lengths) and lengths.max() >= most:
            raise ProtocolError(f"an episode has more than {most:,} steps (--max-episode-steps)")

    def any_ends(self, slots: IntArray, steps: Steps) -> bool:
        """Return whether an episode ends with ``steps`` of ``slots``, or is given up."""
        given_up = steps.starts & self._is_running[slots]
        return bool(steps.has_ended.any() or given_up.any())

    def count(self, transitions: Transitions) -> FloatArray:
        """Count the transitions; return the sums of rewards of the episodes that ended [E].

        A sum may be too large for a float.
        """
        with np.errstate(over="ignore"):
            self._rewards[transitions.stepped] += transitions.rewards
            self._note_rewards(transitions.rewards)
        self._lengths[transitions.stepped] += 1
        if transitions.only_steps:
            return _NO_SCORES
        scores = self._rewards[transitions.ended]
        self._end(transitions.ended)
        self._give_up(transitions.given_up)
        self._start(transitions.started)
        return scores

    def give_up(self, slots: IntArray) -> None:
        """Count the episodes that go on in ``slots`` as over."""
        self._give_up(slots[self._is_running[slots]])

    def store_if_due(self) -> None:
        """Store the means of episodes when a second is over."""
        self._means.store_if_due()

    def close(self) -> None:
        """Store the remaining metrics."""
        self._means.store()

    def _note_rewards(self, rewards: FloatArray) -> None:
        """Take note of the rewards of steps [N], of episodes that may have no end."""
        total = float(rewards.sum())
        if len(rewards) and abs(total) < _SUMMABLE:
            self._means.add("episode/reward per step", total / len(rewards), len(rewards))

    def _forget_numbers(self, slots: IntArray) -> None:
        for slot in slots.tolist() if self._numbers else ():
            self._numbers.pop(slot, None)

    def _start(self, slots: IntArray) -> None:
        self._forget_numbers(slots)
        self._is_running[slots] = True
        self._rewards[slots] = 0.0
        self._lengths[slots] = 0
        self._started_at[slots] = self._clock()

    def _give_up(self, slots: IntArray) -> None:
        """Take note of episodes that have come to no end of their own."""
        self._end(slots)

    def _end(self, slots: IntArray) -> None:
        """Store the episodes' metrics; nothing for one without a single step."""
        now = self._clock()
        self._is_running[slots] = False
        for slot in slots.reshape(-1, 1):
            reward, length = float(self._rewards[slot[0]]), int(self._lengths[slot[0]])
            if length and np.isfinite(reward):
                seconds = now - float(self._started_at[slot[0]])
                numbers = self._numbers.pop(int(slot[0]), {})
                self._store(slot, Ended(reward, length, seconds, numbers))

    def _store(self, slot: IntArray, episode: Ended) -> None:
        """Store the metrics of the episode that has ended in ``slot`` [1]."""
        self._metrics.scalar(EPISODE_REWARD, episode.reward)
        self._means.add("episode/length", episode.length)
        self._means.add("episode/time", episode.seconds)
        self._means.add("episode/reward per time", episode.reward / max(episode.seconds, 1e-9))
        for name, y in environments_own(episode.numbers).items():
            if abs(y) < _SUMMABLE:
                self._means.add(f"{OF_CLIENT}{EPISODE_INFO}{name}", y)


class EvaluationEpisodes(Episodes):
    """Stores the score of each episode that has come to its end, for the policy that played it.

    An episode that is given up, or whose connection is lost, has no score. ``policy_of`` returns
    the policy of a slot's episode, if it is known.
    """

    def __init__(
        self,
        metrics: Metrics,
        policy_of: Callable[[IntArray], EvaluatedPolicy | None],
        most_steps: int | None = None,
    ) -> None:
        super().__init__(metrics, most_steps=most_steps)
        self._policy_of = policy_of

    def _store(self, slot: IntArray, episode: Ended) -> None:
        policy = self._policy_of(slot)
        step = None if policy is None else policy.global_t
        self._metrics.scalar(EVALUATION_REWARD, episode.reward, step)
        self._metrics.scalar("evaluation/length", episode.length, step)
        for name, y in environments_own(episode.numbers).items():
            self._metrics.scalar(f"{OF_EVALUATING_CLIENT}{EPISODE_INFO}{name}", y, step)
        if policy is not None and policy.version is not None:
            own = {EPISODE_RETURN: episode.reward, EPISODE_LENGTH: episode.length}
            counted = {**episode.numbers, **own}
            store_evaluated(self._metrics, counted, policy.version, by_learner=policy.by_learner)

    def _note_rewards(self, rewards: FloatArray) -> None:
        """Do nothing: metrics of each step belong to the training."""

    def _give_up(self, slots: IntArray) -> None:
        self._is_running[slots] = False
