"""Which steps of an agent are sent together, and when: seed 002, "Additional specifications".

Each class is an ``ExperienceSink`` of single steps that hands on to another one.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from relaax.algorithm_base import ExperienceSink
from relaax.configuration.actor_agents import AgentSamples
from relaax.errors import ConfigurationError
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import ABANDONED, ENDS, FINAL, REWARD, START, STEPS, TERMINATED, VERSION

#: Makes samples of an episode.
Samples: TypeAlias = Callable[[StepBatch], Iterator[StepBatch]]


def with_samples(
    sink: ExperienceSink[Any],
    samples: AgentSamples,
    longest: int | None,
    policy: str,
    team_size: int = 1,
) -> ExperienceSink[Any]:
    """Return ``sink`` behind the sinks that ``samples`` ask for.

    Episodes have ``longest`` steps at most. ``policy`` is its name, for messages. The episodes of a
    team of ``team_size`` agents are sent together.
    """
    if team_size > 1:
        sink = TeamSamples(sink, team_size)
    if samples.send_concise_info:
        sink = EpisodeSamples(sink, concise)
    elif samples.pad_trajectory and longest is not None:
        sink = EpisodeSamples(sink, padded_to(longest + samples.bootstrap_steps))
    elif samples.sends_episodes:
        sink = EpisodeSamples(sink, in_pieces_of(samples.sample_steps))
    elif samples.sample_steps is not None:
        sink = WindowSamples(sink, samples.sample_steps, samples.bootstrap_steps)
    return OneVersion(sink, policy) if samples.require_one_version else sink


class _Handing:
    """Hands all calls on to another sink."""

    def __init__(self, sink: ExperienceSink[Any]) -> None:
        self._sink = sink

    def warm_up(self) -> None:
        """Let the sink prepare."""
        self._sink.warm_up()

    def stored_types(self, types: Mapping[str, np.dtype[Any]]) -> Mapping[str, np.dtype[Any]]:
        """Return the types that the sink stores, where it says so."""
        ask = getattr(self._sink, "stored_types", None)
        return types if ask is None else ask(types)

    def close(self) -> None:
        """Close the sink."""
        self._sink.close()


class WindowSamples(_Handing):
    """Sends the steps of an agent when ``sample_steps`` and ``bootstrap_steps`` more are there.

    The bootstrap steps begin the next sample, and are sent once.
    """

    def __init__(self, sink: ExperienceSink[Any], sample_steps: int, bootstrap_steps: int) -> None:
        super().__init__(sink)
        self._sample_steps = sample_steps
        self._first = sample_steps + bootstrap_steps
        #: By slot, with how many steps the next sample has.
        self._held: dict[int, tuple[list[StepBatch], int]] = {}

    def put(self, steps: StepBatch) -> None:
        """Hold the steps, or send them with those before."""
        for slot, own in _by_slot(steps):
            held, needed = self._held.get(slot, ([], self._first))
            held.append(own)
            while sum(map(len, held)) >= needed:
                whole = StepBatch.concatenated(held)
                self._sink.put(_between(whole, 0, needed))
                held = [_between(whole, needed, len(whole))] if len(whole) > needed else []
                needed = self._sample_steps
            self._held[slot] = held, needed

    def close(self) -> None:
        """Send what is held, and close the sink."""
        for held, _ in self._held.values():
            if held:
                self._sink.put(StepBatch.concatenated(held))
        self._held.clear()
        super().close()


class EpisodeSamples(_Handing):
    """Sends the samples of an episode when it is over."""

    def __init__(self, sink: ExperienceSink[Any], samples: Samples) -> None:
        super().__init__(sink)
        self._samples = samples
        #: By slot: the steps of an open episode.
        self._held: dict[int, list[StepBatch]] = {}

    def put(self, steps: StepBatch) -> None:
        """Hold the steps, up to the end of their episode."""
        for slot, own in _by_slot(steps):
            begin = 0
            for end in (np.flatnonzero(own.flags & ENDS) + 1).tolist():
                parts = [*self._held.pop(slot, []), _between(own, begin, end)]
                for sample in self._samples(StepBatch.concatenated(parts)):
                    self._sink.put(sample)
                begin = end
            if begin < len(own):
                self._held.setdefault(slot, []).append(_between(own, begin, len(own)))


class TeamSamples(_Handing):
    """Sends the next sample of each of ``size`` agents, whose slots follow one another, together.

    Where an agent has a second one before another has its first, those that are there are sent: an
    agent that has left keeps no other waiting.
    """

    def __init__(self, sink: ExperienceSink[Any], size: int) -> None:
        super().__init__(sink)
        self._size = size
        #: By team and slot.
        self._waiting: dict[int, dict[int, StepBatch]] = {}

    def put(self, steps: StepBatch) -> None:
        """Hold the sample of a slot, until the others of its team are there."""
        (slot,) = np.unique(steps.slots).tolist()
        team = slot // self._size
        if slot in self._waiting.get(team, {}):
            self._send(team)
        waiting = self._waiting.setdefault(team, {})
        waiting[slot] = steps
        if len(waiting) == self._size:
            self._send(team)

    def close(self) -> None:
        """Send what waits, and close the sink."""
        for team in list(self._waiting):
            self._send(team)
        super().close()

    def _send(self, team: int) -> None:
        self._sink.put(StepBatch.concatenated(list(self._waiting.pop(team).values())))


def in_pieces_of(length: int | None) -> Samples:
    """Return what sends all of an episode, ``length`` steps at a time; None: at once."""

    def samples(episode: StepBatch) -> Iterator[StepBatch]:
        most = length or len(episode)
        for begin in range(0, len(episode), most):
            yield _between(episode, begin, min(begin + most, len(episode)))

    return samples


def padded_to(length: int) -> Samples:
    """Return what sends an episode as ``length`` rows.

    Those behind its last one repeat it, and have no action and no reward.
    """

    def samples(episode: StepBatch) -> Iterator[StepBatch]:
        missing = length - len(episode)
        if missing < 0:
            raise ConfigurationError(
                f"pad_trajectory: an episode has {len(episode)} rows, and is padded to {length}"
            )
        last = episode.chosen(np.full(missing, len(episode) - 1))
        columns = {**last.columns, REWARD: np.zeros_like(last.columns[REWARD])}
        rest = StepBatch(last.slots, np.full(missing, FINAL | ABANDONED, np.uint8), columns)
        yield StepBatch.concatenated([episode, rest]) if missing else episode

    return samples


def concise(episode: StepBatch) -> Iterator[StepBatch]:
    """Send one step: the first one, with the sum of all rewards, as the whole episode.

    The state in which it was cut off is behind it. Nothing is sent of an episode that was
    abandoned: its sum is not whole.
    """
    is_step = episode.flags & FINAL == 0
    if not is_step.any() or episode.flags[-1] & ABANDONED:
        return
    first = _between(episode, 0, 1)
    total = episode.columns[REWARD][is_step].sum(keepdims=True)
    columns = {**first.columns, REWARD: total.astype(first.columns[REWARD].dtype)}
    if STEPS in columns:
        columns[STEPS] = episode.columns[STEPS][is_step].sum(keepdims=True)
    if is_step[-1]:
        yield StepBatch(first.slots, np.array([START | TERMINATED], np.uint8), columns)
    else:
        step = StepBatch(first.slots, np.array([START], np.uint8), columns)
        yield StepBatch.concatenated([step, _between(episode, len(episode) - 1, len(episode))])


class OneVersion(_Handing):
    """Raises ConfigurationError for a trajectory with steps of two versions of its policy."""

    def __init__(self, sink: ExperienceSink[Any], policy: str) -> None:
        super().__init__(sink)
        self._policy = policy
        #: Of the episode of each slot.
        self._versions: dict[int, int] = {}

    def put(self, steps: StepBatch) -> None:
        """Hand on."""
        if VERSION not in steps.columns:
            raise ConfigurationError(
                f"require_one_version: steps of the policy {self._policy!r} have no versions: its "
                "algorithm stores an episode in one row"
            )
        rows = zip(
            steps.slots.tolist(), steps.flags.tolist(), steps.columns[VERSION].tolist(), strict=True
        )
        for slot, flags, version in rows:
            if flags & FINAL:  # no action was chosen
                continue
            if flags & START:
                self._versions[slot] = version
            if (first := self._versions.setdefault(slot, version)) != version:
                raise ConfigurationError(
                    f"require_one_version: a trajectory has steps of versions {first} and "
                    f"{version} of the policy {self._policy!r}"
                )
        self._sink.put(steps)


def _by_slot(steps: StepBatch) -> Iterator[tuple[int, StepBatch]]:
    for slot in np.unique(steps.slots).tolist():
        yield slot, steps.chosen(steps.slots == slot)


def _between(steps: StepBatch, begin: int, end: int) -> StepBatch:
    return steps.chosen(np.arange(begin, end))
