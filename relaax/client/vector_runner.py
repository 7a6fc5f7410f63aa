"""Drives Gymnasium's vector environments through a ``VectorClient``."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from relaax.client.action_masks import MaskReader
from relaax.client.checks import as_rewards, checked_flags
from relaax.client.gymnasium_actions import ExecutedActionReader, vector_action_decoder
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
from relaax.steps import EXECUTED, START, Steps

Array = npt.NDArray[Any]


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
        self._step = (
            self._step_and_start if mode is AutoresetMode.SAME_STEP else self._step_or_start
        )
        self._count = environments.num_envs
        self._finals = FinalObservations(environments, self._encode, self._observer.on_doubt)
        self._masks = MaskReader(self._observer.on_doubt)

    def _begin(self) -> Any:
        self._observer.environment_begins()
        observations, found = self._environments.reset(seed=self._seed)
        self._observer.environment_returned()
        self._seed = None
        require_numpy(observations)
        self._returns = np.zeros(self._count)
        self._lengths = np.zeros(self._count, np.int64)
        self._began = np.full(self._count, time.perf_counter())
        self._has_ended = np.zeros(self._count, np.bool_)
        return self._beside(self._encode(observations), infos_by_name(found))

    def _play(self, actions: Array) -> None:
        self._actions = actions
        while not self._is_finished():
            self._actions = self._step(self._decode(self._actions))

    def _step_and_start(self, actions: Array) -> Array:
        """Step environments that start again within the step."""
        observations, rewards, terminated, truncated, infos = self._step_all(actions)
        is_over = terminated | truncated
        is_absent, is_new = infos.get(ABSENT), infos.get(RESTARTED)
        stepped = np.ones(self._count, np.bool_)
        if is_absent is not None and is_new is not None:
            stepped = is_over | ~(is_absent | is_new)
        self._count_steps(rewards, stepped, is_over)
        states = self._encode(observations)
        executed = self._executed_by_all(infos, is_over, actions)
        finals = self._finals.of(
            infos, np.flatnonzero(truncated & ~terminated), states, self._masks
        )
        if is_absent is not None:
            flags = end_flags(terminated, truncated)
            steps = self._steps_of_some(rewards, states, flags, finals, executed, infos)
            return self._answered(steps, ~is_absent)
        states = self._beside(states, infos)
        return self._timed(
            lambda: self._client.send(
                rewards, states, terminated, truncated, finals, actions=executed
            )
        )

    def _executed_by_all(self, infos: Mapping[str, Any], is_over: Array, made: Any) -> Array | None:
        """Return all executed actions [N, ...]; None if they are the sent ones.

        At the end of an episode, Gymnasium has the infos of the last step in ``final_info``.
        """
        sent, executed = self._actions, None
        for of, known in ((~is_over, infos), (is_over, infos_of_ends(infos))):
            others, actions = self._executed.of_many(known, of, made, sent)
            if len(actions):
                executed = sent.copy() if executed is None else executed
                executed[others] = actions
        return executed

    def _step_or_start(self, actions: Array) -> Array:
        """Step environments that take an extra step, without a reward, to start again."""
        had_ended = self._has_ended
        observations, rewards, terminated, truncated, infos = self._step_all(actions)
        states = self._encode(observations)
        flags = end_flags(terminated, truncated)
        flags[had_ended] = START
        self._has_ended = (flags != 0) & ~had_ended
        self._count_steps(rewards, ~had_ended, self._has_ended)
        others, executed = self._executed.of_many(infos, ~had_ended, actions, self._actions)
        flags[others] |= EXECUTED
        if not flags.any():
            states = self._beside(states, infos)
            return self._timed(lambda: self._client.send(rewards, states))
        finals = self._beside(states, infos, (truncated & ~terminated) & ~had_ended)
        acting = self._beside(states, infos, ~self._has_ended)
        rewards = np.where(had_ended, 0, rewards)
        steps = Steps(np.arange(self._count), flags, rewards, acting, finals, executed)
        return self._with_any_action(self._timed(lambda: self._client.exchange(steps).actions))

    def _beside(self, states: Observations, infos: Any, wanted: Array | None = None) -> Any:
        """Return ``states`` [N, ...], or those ``wanted``, with their masks of actions if any."""
        if wanted is None:
            return self._masks.beside_rows(states, infos, np.arange(self._count))
        rows = np.flatnonzero(wanted)
        return self._masks.beside_rows(_selected(states, wanted), infos, rows)

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

    def _steps_of_some(
        self,
        rewards: Array,
        states: Observations,
        flags: Array,
        finals: Any,
        executed: Array | None,
        infos: Mapping[str, Any],
    ) -> Steps:
        """Return the steps if some environments are absent, or begin after they were made again.

        An environment that begins gives up its previous episode. ``flags`` [N] are those of ends.
        """
        is_absent, is_new = infos[ABSENT], infos[RESTARTED]
        self._begin_anew(is_new)
        has_ended = flags != 0
        flags[has_ended & ~is_absent] |= START
        flags[is_new] = START
        stepped = has_ended | ~(is_absent | is_new)
        if executed is not None:
            flags[stepped] |= EXECUTED
            executed = executed[stepped]
        reports = has_ended | ~is_absent
        return Steps(
            np.flatnonzero(reports),
            flags[reports],
            np.where(stepped, rewards, 0)[reports],
            self._beside(states, infos, ~is_absent),
            () if finals is None else finals,
            () if executed is None else executed,
        )

    def _answered(self, steps: Steps, acting: Array) -> Array:
        """Report steps of some; return actions of all, the previous ones if not ``acting``."""
        actions = self._actions.copy()
        if len(steps.environments):
            answered = self._timed(lambda: self._client.exchange(steps).actions)
            if len(answered):
                actions[acting] = answered
        return actions

    def _begin_anew(self, is_new: Array) -> None:
        """Count no steps of episodes that were given up."""
        self._returns[is_new], self._lengths[is_new] = 0.0, 0
        self._began[is_new] = time.perf_counter()
        self._note_restarts(int(np.count_nonzero(is_new)))

    def _with_any_action(self, answered: Array) -> Array:
        """Fill in the last action for environments that will start again and ignore it."""
        if not self._has_ended.any():
            return answered
        actions = self._actions.copy()
        if len(answered):
            actions[~self._has_ended] = answered
        return actions

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


def _selected(states: Observations, wanted: Array) -> Observations:
    selected: Observations = mapped(lambda array: array[wanted], states)
    return selected
