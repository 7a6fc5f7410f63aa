"""Several Gymnasium environments that step together; a failed one is made again."""

import contextlib
import logging
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import iterate

from relaax.client.checks import checked_reward, require_finite_array
from relaax.client.gymnasium_edges import keep_and_check
from relaax.client.gymnasium_factory import Environment, Environments
from relaax.client.gymnasium_observations import KeptObservations
from relaax.client.restarts import FailedTooOften, Restarts, in_words, lost_message, restart_message
from relaax.client.simulator import RunObserver
from relaax.errors import RelaaxError

_log = logging.getLogger(__name__)

BoolArray = npt.NDArray[np.bool_]

#: In the infos of a step: which environments have begun an episode after they were made again, and
#: which have no observation: they have failed, and are not made again yet. Both are bool [N].
RESTARTED, ABSENT = "relaax_restarted", "relaax_absent"


class RestartingEnvironments(VectorEnv[Any, Any, Any]):  # type: ignore[misc]  # it has no types
    """Steps the environments of a ``SyncVectorEnv``, and makes failed ones again.

    An environment fails when it raises or exits, when it hangs and is interrupted, and when it
    returns a number that is not finite. Its episode is given up; the others play on, also in the
    pause before it is made again. ``RESTARTED`` and ``ABSENT`` are in the infos of that step. After
    too many failures an environment is lost: it stays absent, and the others play on;
    FailedTooOften if all are lost. Exceptions of an environment that has never made a step
    propagate: it would fail again.

    names: of the environments, for messages. seeds: returns the seed of environment k that is made
    again for the n-th time. ``observer`` is called at each restart and loss.
    """

    def __init__(
        self,
        environments: SyncVectorEnv,
        names: Sequence[str],
        seeds: Callable[[int, int], int | None] = lambda index, restarts: None,
        observer: RunObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self.num_envs = environments.num_envs
        self.single_observation_space = environments.single_observation_space
        self.single_action_space = environments.single_action_space
        self.action_space = environments.action_space
        self.metadata = {**environments.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        self._envs: list[Environment] = list(environments.envs)
        self._names = names
        self._kept = KeptObservations(environments.single_observation_space)
        for index in range(environments.num_envs):
            self._keep_and_check(index)
        self._make = list(environments.env_fns)
        self._seeds = seeds
        self._observer = observer or RunObserver()
        self._clock = clock
        self._wait = wait
        count = environments.num_envs
        self._restarts = [Restarts(clock) for _ in range(count)]
        self._has_stepped = np.zeros(count, np.bool_)
        #: When those are made again that have failed: NaN for never, infinite for all others.
        self._due = np.full(count, np.inf)
        self._observed: list[Any] = [None] * count

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in each; wait for failed environments."""
        self._observer.environment_returned()  # each reset reports its own begin
        seeds = _one_each(seed, self.num_envs)
        infos: dict[str, Any] = {}
        for index, own in enumerate(seeds):
            if np.isinf(self._due[index]):
                self._try(index, partial(self._start, index, infos, own))
            while np.isfinite(self._due[index]):
                self._wait(max(self._due[index] - self._clock(), 0.0))
                self._make_again(index, infos)
        return self._together(), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Make a step in each present environment, and make those again whose pause is over."""
        self._observer.environment_returned()
        count = self.num_envs
        infos: dict[str, Any] = {}
        self._rewards = np.zeros(count)
        self._ended = np.zeros((2, count), np.bool_)
        was_absent = ~np.isinf(self._due)
        if was_absent.all():
            self._wait(max(float(np.nanmin(self._due)) - self._clock(), 0.0))
        for index, action in enumerate(iterate(self.action_space, actions)):
            if not was_absent[index]:
                self._try(index, partial(self._step, index, action, infos))
            elif self._clock() >= self._due[index]:
                self._make_again(index, infos)
        is_absent = ~np.isinf(self._due)
        if was_absent.any() or is_absent.any():
            infos[ABSENT], infos[RESTARTED] = is_absent, was_absent & ~is_absent
        terminated, truncated = self._ended
        return self._together(), self._rewards, terminated, truncated, infos

    def close_extras(self, **_: Any) -> None:
        """Close all."""
        for environment in self._envs:
            _close(environment)

    def _step(self, index: int, action: Any, infos: dict[str, Any]) -> None:
        observation, reward, terminated, truncated, info = self._envs[index].step(action)
        self._rewards[index] = checked_reward(reward)
        require_finite(observation)
        self._ended[:, index] = terminated, truncated
        self._has_stepped[index] = True
        if not (terminated or truncated):
            self._observed[index] = observation
            self._add_info(infos, info, index)
            return
        last = {"final_obs": observation, "final_info": info}
        self._add_info(infos, last, index)
        self._start(index, infos)

    def _start(self, index: int, infos: dict[str, Any], seed: int | None = None) -> None:
        observation, info = self._envs[index].reset(seed=seed)
        require_finite(observation)
        self._observed[index] = observation
        self._add_info(infos, info, index)

    def _keep_and_check(self, index: int) -> None:
        keep_and_check(self._envs[index], self._names[index], self._kept)

    def _make_again(self, index: int, infos: dict[str, Any]) -> None:
        def make() -> None:
            self._envs[index] = self._make[index]()
            self._keep_and_check(index)
            self._start(index, infos, self._seeds(index, self._restarts[index].count))
            self._due[index] = np.inf

        self._try(index, make)

    def _try(self, index: int, call: Callable[[], None]) -> None:
        """Do something with an environment; if that fails, let it be made again later."""
        self._observer.environment_begins()
        try:
            call()
        except RelaaxError:  # it cannot be used as it is
            raise
        except (Exception, SystemExit) as error:
            is_ours = isinstance(error, SystemExit) and self._observer.may_exit
            if is_ours or not self._has_stepped[index]:
                raise
            self._fail(index, error)
        finally:
            self._observer.environment_returned()

    def _fail(self, index: int, error: BaseException) -> None:
        name, restarts = self._names[index], self._restarts[index]
        traceback.print_exception(error)
        _close(self._envs[index])
        try:
            pause_s = restarts.next_pause_s(name, in_words(error))
        except FailedTooOften as too_often:
            self._lose(index, too_often)
            return
        self._due[index] = self._clock() + pause_s
        message = restart_message(name, in_words(error), pause_s, restarts.count)
        _log.warning("%s", message)
        self._observer.on_restart(message)

    def _lose(self, index: int, error: FailedTooOften) -> None:
        """Never make an environment again; raise ``error`` where no other one is left."""
        self._due[index] = np.nan
        if np.isnan(self._due).all():
            raise error
        message = lost_message(error)
        _log.warning("%s", message)
        self._observer.on_lost(message)

    def _together(self) -> Any:
        """Return all observations in new arrays; an absent environment gets those of another."""
        (some, *_) = [each for each in self._observed if each is not None]
        return self._kept.together([some if each is None else each for each in self._observed])


def restarting(
    environments: Environments,
    names: Sequence[str],
    seeds: Callable[[int, int], int | None],
    observer: RunObserver,
) -> Environments:
    """Return environments that are made again if they fail, if that is possible.

    Environments that are stepped as one thing, in arrays or in other processes, fail together.
    """
    if type(environments) is SyncVectorEnv:
        return RestartingEnvironments(environments, names, seeds, observer)
    return environments


def _one_each(seed: int | list[int | None] | None, count: int) -> list[int | None]:
    if isinstance(seed, int):
        return [seed + index for index in range(count)]
    return [None] * count if seed is None else seed


def require_finite(observation: Any) -> None:
    """Raise ValueError for a number that is not finite; nothing can be learnt from it."""
    if isinstance(observation, dict | tuple):
        for part in observation.values() if isinstance(observation, dict) else observation:
            require_finite(part)
    else:
        require_finite_array("the state", np.asarray(observation))


def _close(environment: Environment) -> None:
    """Close an environment; a failed one may fail again."""
    with contextlib.suppress(Exception):
        environment.close()
