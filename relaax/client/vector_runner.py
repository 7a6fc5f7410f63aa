"""Drives Gymnasium's vector environments through a ``VectorClient``."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from relaax.client.action_masks import MaskReader
from relaax.client.checks import as_rewards, checked_flags
from relaax.client.episode_info import KEY, EpisodeInfoReader, send_numbers
from relaax.client.gymnasium_actions import (
    EXECUTED_ACTION,
    ExecutedActionReader,
    vector_action_decoder,
)
from relaax.client.gymnasium_edges import require_numpy
from relaax.client.gymnasium_factory import Environments
from relaax.client.gymnasium_observations import state_encoder
from relaax.client.restarting_environments import ABSENT, RESTARTED, RestartingEnvironments
from relaax.client.simulator import RunObserver
from relaax.client.simulator_runner import EpisodeRunner
from relaax.client.vector_client import VectorClient, end_flags
from relaax.client.vector_finals import FinalObservations, infos_by_name, infos_of_ends
from relaax.errors import ConfigurationError
from relaax.observations import Observations, mapped
from relaax.steps import EXECUTED, FINAL, START, Steps

Array = npt.NDArray[Any]


#: In infos of steps that are more than a step of each environment.
_MARKS = {ABSENT, RESTARTED, EXECUTED_ACTION}


class VectorRunner(EpisodeRunner[VectorClient]):
    """Plays episodes in all environments at once.

    Both of Gymnasium's ways to start the next episode by itself are supported: in the same step
    (``AutoresetMode.SAME_STEP``) and in the next step (``NEXT_STEP``). ``ConfigurationError`` for
    others, and for spaces that RLX cannot carry. The environments of a ``SyncVectorEnv`` return
    copies of their observations from then on.

    The first reset gets ``seed``: a number, or one for each environment; environments with common
    random numbers get the first. Episodes beyond the number that was asked for, which end in the
    same step as the last one, are not counted. ``run`` raises ``UnusableAction`` when the server's
    actions do not fit the environments, and ``ConfigurationError`` when they return tensors of
    another library, or no final observations of episodes that were cut off.
    """

    def __init__(
        self,
        environments: Environments,
        client: VectorClient,
        *,
        seed: int | Sequence[int | None] | None = None,
        observer: RunObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        mode = environments.metadata.get("autoreset_mode")
        if mode not in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
            raise ConfigurationError(
                f"vector environments must start episodes by themselves (autoreset_mode), "
                f"the mode of these is {mode}"
            )
        super().__init__(client, observer, clock)
        self._environments = environments
        self._seed = _seed_for(environments, seed)
        self._encode = state_encoder(environments.single_observation_space)
        self._decode = vector_action_decoder(environments.single_action_space)
        self._executed = ExecutedActionReader(environments.single_action_space)
        #: Whether an episode begins in a step of its own, without a reward, after the last one.
        self._starts_later = mode is AutoresetMode.NEXT_STEP
        self._count = environments.num_envs
        self._everyone = np.arange(self._count)
        self._nobody = np.zeros(self._count, np.bool_)
        self._finals = FinalObservations(environments, self._encode, self._observer.on_doubt)
        self._masks = MaskReader(self._observer.on_doubt)
        self._numbers = EpisodeInfoReader(self._observer.on_doubt)

    def _begin(self) -> Any:
        self._observer.environment_begins()
        observations, found = self._environments.reset(seed=self._seed)
        self._observer.environment_returned()
        self._seed = None
        require_numpy(self._environments.single_observation_space, observations)
        self._returns = np.zeros(self._count)
        self._lengths = np.zeros(self._count, np.int64)
        self._began = np.full(self._count, time.perf_counter())
        self._starts_next = self._nobody
        return self._beside(self._encode(observations), infos_by_name(found), self._everyone)

    def _play(self, actions: Array) -> None:
        self._actions = actions
        while not self._is_finished():
            self._actions = self._step(self._decode(self._actions))

    def _step(self, actions: Array) -> Array:
        """Step all environments, report it, and return the next actions of the server."""
        observations, rewards, terminated, truncated, infos = self._step_all(actions)
        states = self._encode(observations)
        if (
            (terminated | truncated).any()
            or self._starts_next.any()
            or not _MARKS.isdisjoint(infos)
        ):
            return self._report(actions, rewards, terminated, truncated, infos, states)
        self._count_steps(rewards, ~self._nobody, self._nobody)
        self._finals.before = states
        states = self._beside(states, infos, self._everyone)
        return self._timed(lambda: self._client.send(rewards, states))

    def _report(
        self,
        actions: Any,
        rewards: Array,
        terminated: Array,
        truncated: Array,
        infos: Mapping[str, Any],
        states: Observations,
    ) -> Array:
        """Report a step in which episodes end or begin, or other actions were executed."""
        is_absent, is_new = infos.get(ABSENT, self._nobody), infos.get(RESTARTED, self._nobody)
        begins = is_new | self._starts_next
        flags = end_flags(terminated, truncated)
        flags[begins] = 0
        is_over = flags != 0
        stepped = is_over | ~(is_absent | begins)
        self._count_steps(rewards, stepped, is_over)
        self._begin_anew(is_new)
        finals = self._final_states(infos, flags, states)
        self._starts_next = is_over if self._starts_later else self._nobody
        acting = ~(is_absent | self._starts_next)
        flags[begins | (is_over & acting)] |= START
        others, executed = self._executed_by_others(infos, stepped, is_over, actions)
        flags[others] |= EXECUTED
        self._send_numbers(infos_of_ends(infos), is_over)
        reports = is_over | ~is_absent
        rewards = np.where(stepped, rewards, 0)[reports]
        (places,) = np.nonzero(acting)
        wanted = self._beside(states, infos, places)
        steps = Steps(np.flatnonzero(reports), flags[reports], rewards, wanted, finals, executed)
        return self._answered(steps, places)

    def _final_states(self, infos: Mapping[str, Any], flags: Array, states: Observations) -> Any:
        """Return the last observations [F, ...] of episodes that were cut off."""
        (cut_off,) = np.nonzero(flags & FINAL)
        if not self._starts_later:
            return self._finals.of(infos, cut_off, states, self._masks)
        return self._beside(states, infos, cut_off) if len(cut_off) else ()

    def _send_numbers(self, infos: Mapping[str, Any], is_over: Array) -> None:
        """Send the environments' own numbers of episodes that are over."""
        if KEY in infos:
            for index in np.flatnonzero(is_over).tolist():
                numbers = self._numbers.of_environment(infos, index)
                send_numbers(self._client.metrics(), numbers, index)

    def _executed_by_others(
        self, infos: Mapping[str, Any], stepped: Array, is_over: Array, made: Any
    ) -> tuple[Array, Array]:
        """Return which environments executed other actions than the sent ones, and these [X, ...].

        At the end of an episode, Gymnasium has the infos of the last step in ``final_info``.
        """
        others, executed = self._nobody, self._actions
        for of, known in ((stepped & ~is_over, infos), (is_over, infos_of_ends(infos))):
            has, actions = self._executed.of_many(known, of, made, self._actions)
            if len(actions):
                others, executed = others | has, executed.copy()
                executed[has] = actions
        return others, executed[others]

    def _beside(self, states: Observations, infos: Any, places: Array) -> Any:
        """Return the ``states`` at ``places`` of [N, ...], with their masks of actions if any."""
        if len(places) < self._count:
            states = mapped(lambda array: array[places], states)
        return self._masks.beside_rows(states, infos, places)

    def _step_all(self, actions: Array) -> tuple[Any, Array, Array, Array, Any]:
        """Step all environments; return rewards as float64 [N] and flags as bool [N]."""
        self._observer.environment_begins()
        observations, rewards, terminated, truncated, infos = self._environments.step(actions)
        self._observer.environment_returned()
        return (
            observations,
            as_rewards(rewards, self._count),
            checked_flags("terminated", terminated, self._count),
            checked_flags("truncated", truncated, self._count),
            infos_by_name(infos),
        )

    def _answered(self, steps: Steps, acting: Array) -> Array:
        """Report steps of some; return actions of all, new ones of those that are ``acting``."""
        actions = self._actions.copy()
        if len(steps.environments):
            answered = self._timed(lambda: self._client.exchange(steps).actions)
            if len(answered):
                actions[acting] = answered
        return actions

    def _begin_anew(self, is_new: Array) -> None:
        """Count no steps of episodes that were given up."""
        if not is_new.any():
            return
        self._returns[is_new], self._lengths[is_new] = 0.0, 0
        self._began[is_new] = time.perf_counter()
        self._note_restarts(int(np.count_nonzero(is_new)))

    def _count_steps(self, rewards: Array, stepped: Array, is_over: Array) -> None:
        self._returns[stepped] += rewards[stepped]
        self._lengths[stepped] += 1
        self._observer.on_step(int(np.count_nonzero(stepped)))
        for index in np.flatnonzero(is_over).tolist():
            if not self._is_finished():
                length, began = int(self._lengths[index]), float(self._began[index])
                self._note_episode(float(self._returns[index]), length, began)
            self._returns[index], self._lengths[index] = 0.0, 0
            self._began[index] = time.perf_counter()


def _seed_for(
    environments: Environments, seed: int | Sequence[int | None] | None
) -> int | list[int | None] | None:
    """Return the seed in the form that these environments take."""
    if seed is None or isinstance(seed, int):
        return seed
    has_one_each = isinstance(
        environments.unwrapped, SyncVectorEnv | AsyncVectorEnv | RestartingEnvironments
    )
    return list(seed) if has_one_each else seed[0]
