"""The last observations of episodes, of vector environments that start others in the same step."""

from collections.abc import Callable, Mapping
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

#: So many episodes in a row may end in the observation that the next one begins with.
MOST_ALIKE = 10

_NEXT_STEP = "Or start episodes in the step that follows: autoreset_mode=AutoresetMode.NEXT_STEP"


class FinalObservations:
    """Finds final observations in infos; ConfigurationError if they are missing or wrong.

    ``doubt`` is called with possible faults. The environments inside of a ``SyncVectorEnv`` return
    copies of their observations from then on.
    """

    def __init__(
        self,
        environments: Environments,
        encode: StateEncoder,
        doubt: Callable[[str], object] = lambda message: None,
    ) -> None:
        self._encode, self._doubt = encode, doubt
        #: bool [N]: whose final observations are known to differ from the next episode's first.
        self._keeps = np.full(environments.num_envs, _keep_each(environments))
        #: int [N]: how many final observations in a row were equal to the next episode's first.
        self._alike = np.zeros(environments.num_envs, np.int64)
        #: The observations [N, ...] of the step before.
        self.before: Observations | None = None

    def of(
        self, infos: Any, truncated: npt.NDArray[np.int64], states: Observations, masks: MaskReader
    ) -> Any:
        """Return the last observations [F, ...] of episodes that were cut off, from ``infos``.

        states: [N, ...], of each step; they begin the next episodes. None if no episode was cut
        off.
        """
        before, self.before = self.before, states
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
        self._require_others(truncated, finals, states, before)
        return masks.beside_rows(finals, infos_by_name(infos.get("final_info")), truncated)

    def _require_others(
        self,
        truncated: npt.NDArray[np.int64],
        finals: Observations,
        states: Observations,
        before: Observations | None,
    ) -> None:
        """Raise ConfigurationError for final observations that are the next episodes' first ones.

        An environment is trusted after one final observation that differs. Some episodes do end
        where they begin, and an observation that was the same ``before`` the last step proves
        nothing: only many in a row are refused, and a warning is logged at the first.
        """
        firsts: Observations = mapped(lambda part: part[truncated], states)
        self._keeps[truncated[_differ(finals, firsts)]] = True
        doubtful = ~self._keeps[truncated]
        if before is not None:
            doubtful &= _differ(mapped(lambda part: part[truncated], before), firsts)
        self._alike[truncated[doubtful]] += 1
        for index in truncated[doubtful].tolist():
            self._judge(index, int(self._alike[index]))

    def _judge(self, index: int, alike: int) -> None:
        what = (
            f"info['final_obs'] of environment {index} is the first observation of the next episode"
        )
        if alike == MOST_ALIKE:
            raise ConfigurationError(
                f"{what}, {MOST_ALIKE} times in a row: its reset fills the array that its step has "
                f"returned. Let it return copies. {_NEXT_STEP}"
            )
        if alike == 1:
            self._doubt(
                f"{what}: if its reset fills the array that its step has returned, let it return "
                f"copies; after {MOST_ALIKE} times in a row it is refused"
            )


def _differ(some: Observations, others: Observations) -> npt.NDArray[np.bool_]:
    """Return which of K observations differ: bool [K]."""
    parts = [
        (one != other).reshape(len(one), -1).any(axis=1)
        for one, other in zip(arrays_in(some), arrays_in(others), strict=True)
    ]
    differ: npt.NDArray[np.bool_] = np.any(parts, axis=0)
    return differ


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
    """Return the part of environment ``index`` in arrays, or in dicts and tuples of them."""
    if isinstance(rows, dict):
        return {name: _row(part, index) for name, part in rows.items()}
    if isinstance(rows, tuple):
        return tuple(_row(part, index) for part in rows)
    return rows[index]


def infos_by_name(infos: Any) -> Mapping[str, Any]:
    """Return the infos of N environments by name; older Gymnasiums give a list of N dicts."""
    if infos is None or isinstance(infos, Mapping):
        return infos or {}
    found: dict[str, Any] = {}
    for index, info in enumerate(infos):
        for name, value in (info or {}).items():
            found.setdefault(name, np.full(len(infos), None, np.object_))[index] = value
    return found


def infos_of_ends(infos: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the infos of the last steps of episodes that have ended, by name.

    Without ``final_info``, as where episodes start in the step that follows, these are ``infos``.
    """
    return infos_by_name(infos["final_info"]) if "final_info" in infos else infos
