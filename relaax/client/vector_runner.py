"""Drives Gymnasium's vector environments through a ``VectorClient``."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from relaax.client.act_latency import ActLatency
from relaax.client.action_masks import MaskReader
from relaax.client.checks import as_rewards, checked_flags
from relaax.client.failure import Failure
from relaax.client.gymnasium_actions import vector_action_decoder
from relaax.client.gymnasium_edges import require_numpy
from relaax.client.gymnasium_executed import ExecutedActionReader
from relaax.client.gymnasium_factory import Environments
from relaax.client.gymnasium_observations import state_encoder
from relaax.client.run_result import STOPPED, RunOutcome, RunResult, result_of_failure
from relaax.client.simulator import EpisodeSummary, RunObserver
from relaax.client.vector_client import VectorClient, end_flags
from relaax.client.vector_finals import FinalObservations
from relaax.errors import ConfigurationError
from relaax.observations import Observations, mapped
from relaax.steps import EXECUTED, START, Steps

Array = npt.NDArray[Any]


class VectorRunner:
    """Plays episodes in all environments at once, for as long as the server answers.

    Both of Gymnasium's ways to start the next episode by itself are understood: in the same step
    (``AutoresetMode.SAME_STEP``) and in the step that follows (``NEXT_STEP``). Raises
    ``ConfigurationError`` for others, and for spaces that cannot be sent or asked for. The
    environments of a ``SyncVectorEnv`` return copies of their observations from then on.

    The first reset gets ``seed``: a number, or one for each environment, of which environments that
    share their random numbers get the first.
    """

    def __init__(
        self,
        environments: Environments,
        client: VectorClient,
        *,
        seed: int | Sequence[int | None] | None = None,
        observer: RunObserver | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        mode = environments.metadata.get("autoreset_mode")
        if mode not in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
            raise ConfigurationError(
                f"vector environments must start episodes by themselves (autoreset_mode), "
                f"the mode of these is {mode}"
            )
        self._environments = environments
        self._client = client
        self._timed = ActLatency(client.metrics(), clock).timed
        self._seed = _seed_for(environments, seed)
        self._observer = observer or RunObserver()
        self._is_stopped = is_stopped
        self._encode = state_encoder(environments.single_observation_space)
        self._decode = vector_action_decoder(environments.single_action_space)
        self._executed = ExecutedActionReader(environments.single_action_space)
        self._step = (
            self._step_and_start if mode is AutoresetMode.SAME_STEP else self._step_or_start
        )
        self._count = environments.num_envs
        self._finals = FinalObservations(environments, self._encode)
        self._masks = MaskReader()
        self._episodes: int | None = None
        self._played = 0
        self._was_connected = False

    def run(self, episodes: int | None = None) -> RunResult:
        """Play until ``episodes`` are over, the stop condition holds or the server does not answer.

        Episodes beyond that number that end in the same step are not counted. Raises
        ``UnusableAction`` when the server's actions do not fit the environments, and
        ``ConfigurationError`` when they return tensors of another library, or no final observations
        of episodes that were cut off.
        """
        self._episodes = episodes
        while True:
            observations, infos = self._environments.reset(seed=self._seed)
            self._seed = None
            require_numpy(observations)
            self._masks.begin(infos)
            self._begin()
            try:
                actions = self._client.init(self._beside(self._encode(observations), infos))
            except Failure as failure:
                return self._ended_by(failure)
            self._was_connected = True
            self._observer.on_connected()
            try:
                return self._play(actions)
            except Failure as failure:
                self._observer.on_disconnected()
                if failure.is_final and not self._played:
                    return self._ended_by(failure)

    def _begin(self) -> None:
        self._returns = np.zeros(self._count)
        self._lengths = np.zeros(self._count, np.int64)
        self._began = np.full(self._count, time.perf_counter())
        self._has_ended = np.zeros(self._count, np.bool_)

    def _play(self, actions: Array) -> RunResult:
        self._actions = actions
        while not self._is_finished():
            if self._is_stopped():
                return STOPPED
            self._actions = self._step(self._decode(self._actions))
        return RunResult(RunOutcome.FINISHED, f"{self._played} episodes are over")

    def _is_finished(self) -> bool:
        return self._episodes is not None and self._played >= self._episodes

    def _step_and_start(self, actions: Array) -> Array:
        """Step environments that start again within the step."""
        observations, rewards, terminated, truncated, infos = self._step_all(actions)
        self._count_steps(rewards, np.ones(self._count, np.bool_), terminated | truncated)
        states = self._encode(observations)
        executed = self._executed_by_all(infos, terminated | truncated, actions)
        finals = self._finals.of(
            infos, np.flatnonzero(truncated & ~terminated), states, self._masks
        )
        states = self._beside(states, infos)
        return self._timed(
            lambda: self._client.send(
                rewards, states, terminated, truncated, finals, actions=executed
            )
        )

    def _executed_by_all(self, infos: dict[str, Any], is_over: Array, made: Any) -> Array | None:
        """Return all executed actions [N, ...]; None where they are those that were sent.

        Where an episode ended, Gymnasium has what is known of its last step in ``final_info``.
        """
        sent, executed = self._actions, None
        for of, known in ((~is_over, infos), (is_over, infos.get("final_info", infos))):
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
        """Step all environments; rewards float64 [N] and flags bool [N], whatever is returned."""
        observations, rewards, terminated, truncated, infos = self._environments.step(actions)
        return (
            observations,
            as_rewards(rewards, self._count),
            checked_flags("terminated", terminated, self._count),
            checked_flags("truncated", truncated, self._count),
            infos,
        )

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
            self._count_episode(index)
            self._returns[index], self._lengths[index] = 0.0, 0
            self._began[index] = time.perf_counter()

    def _count_episode(self, index: int) -> None:
        if self._is_finished():
            return
        seconds = time.perf_counter() - float(self._began[index])
        self._observer.on_episode(
            EpisodeSummary(float(self._returns[index]), int(self._lengths[index]), seconds)
        )
        self._played += 1

    def _ended_by(self, failure: Failure) -> RunResult:
        if self._is_stopped():
            return STOPPED
        return result_of_failure(failure, self._was_connected)


def _seed_for(
    environments: Environments, seed: int | Sequence[int | None] | None
) -> int | list[int | None] | None:
    """Return what these environments take as a seed."""
    if seed is None or isinstance(seed, int):
        return seed
    has_one_each = isinstance(environments.unwrapped, SyncVectorEnv | AsyncVectorEnv)
    return list(seed) if has_one_each else seed[0]


def _selected(states: Observations, wanted: Array) -> Observations:
    selected: Observations = mapped(lambda array: array[wanted], states)
    return selected
