"""The last observations of episodes, of vector environments that start others in the same step."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import SyncVectorEnv

from relaax.client.action_masks import MaskReader
from relaax.client.gymnasium_edges import keep_and_check
from relaax.client.gymnasium_factory import Environments
from relaax.client.gymnasium_observations import KeptObservations, StateEncoder
from relaax.client.restarting_environments import RestartingEnvironments
from relaax.errors import ConfigurationError
from relaax.observations import Observations, arrays_in, mapped

_NEXT_STEP = "Or start episodes in the step that follows: autoreset_mode=AutoresetMode.NEXT_STEP"


class FinalObservations:
    """Finds them in infos; ConfigurationError where they are missing, or are others.

    The environments inside of a ``SyncVectorEnv`` return copies of their observations from then on.
    """

    def __init__(self, environments: Environments, encode: StateEncoder) -> None:
        self._encode = encode
        #: bool [N]: whose final observations are known to be no other episode's first.
        self._keeps = np.full(environments.num_envs, _keep_each(environments))

    def of(
        self, infos: Any, truncated: npt.NDArray[np.int64], states: Observations, masks: MaskReader
    ) -> Any:
        """Return the last observations [F, ...] of episodes that were cut off, from ``infos``.

        states: [N, ...], which begin the next ones. None where no episode was cut off.
        """
        if not len(truncated):
            return None
        held = infos.get("final_obs", infos.get("final_observation"))
        rows = [None if held is None else _row(held, index) for index in truncated.tolist()]
        missing = [i for i, row in zip(truncated.tolist(), rows, strict=True) if row is None]
        if missing:
            raise ConfigurationError(
                f"the episode of environment {missing[0]} was cut off, and there is no "
                "info['final_obs'] of it: the value of the state in which that happens is learnt "
                f"from. {_NEXT_STEP}"
            )
        encoded = [self._encode(row) for row in rows]
        finals: Observations = mapped(lambda *parts: np.stack(parts), *encoded)
        self._require_others(truncated, finals, states)
        return masks.beside_rows(finals, infos_by_name(infos.get("final_info")), truncated)

    def _require_others(
        self, truncated: npt.NDArray[np.int64], finals: Observations, states: Observations
    ) -> None:
        """Raise ConfigurationError for a final observation that is the next episode's first.

        An environment that has had another one once keeps them.
        """
        is_same = np.ones(len(truncated), np.bool_)
        for final, first in zip(arrays_in(finals), arrays_in(states), strict=True):
            differs = final != first[truncated]
            is_same &= ~differs.reshape(len(truncated), -1).any(axis=1)
        self._keeps[truncated[~is_same]] = True
        doubtful = truncated[~self._keeps[truncated]]
        if len(doubtful):
            raise ConfigurationError(
                f"info['final_obs'] of environment {doubtful[0]} is the first observation of the "
                "next episode: its reset fills the array that its step has returned. Let it return "
                f"copies. {_NEXT_STEP}"
            )


def _keep_each(environments: Environments) -> bool:
    """Let the environments inside keep their observations; return whether they can be reached."""
    inside = environments.unwrapped
    if isinstance(inside, RestartingEnvironments):
        return True
    if not isinstance(inside, SyncVectorEnv):
        return False
    kept = KeptObservations(inside.single_observation_space)
    for index, environment in enumerate(inside.envs):
        keep_and_check(environment, f"environment {index}", kept, partial(_make_room, inside, kept))
    return True


def _make_room(inside: SyncVectorEnv, kept: KeptObservations, observation: Any) -> None:
    """Let arrays that hold all observations, of the type of their space, hold these as they are."""
    vars(inside)["_observations"] = kept.room_for(vars(inside)["_observations"], observation)


def _row(rows: Any, index: int) -> Any:
    """Return what environment ``index`` has in arrays, or in dicts and tuples of them."""
    if isinstance(rows, dict):
        return {name: _row(part, index) for name, part in rows.items()}
    if isinstance(rows, tuple):
        return tuple(_row(part, index) for part in rows)
    return rows[index]


def infos_by_name(infos: Any) -> Mapping[str, Any]:
    """Return what is known of N environments by name: of older ones there is a list of N dicts."""
    if infos is None or isinstance(infos, Mapping):
        return infos or {}
    found: dict[str, Any] = {}
    for index, info in enumerate(infos):
        for name, value in (info or {}).items():
            found.setdefault(name, np.full(len(infos), None, np.object_))[index] = value
    return found


def infos_of_ends(infos: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is known of the last steps of episodes that have ended, by name.

    Without ``final_info``, as where episodes start in the step that follows, that is ``infos``.
    """
    return infos_by_name(infos["final_info"]) if "final_info" in infos else infos
