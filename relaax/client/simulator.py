"""The interface between a simulator and the runner that plays its episodes; how a run ends."""

import enum
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from relaax.client.failure import Failure
from relaax.protocol.binary import ErrorCode

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EpisodeSummary:
    """An episode that is over: the sum of its rewards, its steps, and how long it took."""

    episode_return: float
    length: int
    seconds: float
    #: The environment's own numbers, by name.
    numbers: Mapping[str, float] = field(default_factory=dict)


class RunObserver:
    """Watches a run; override the methods that you need."""

    #: How often the process of this run was started again, and how many episodes it had played.
    restarts = episodes_before = 0
    #: For how many seconds environments of this process have been busy, where that is measured.
    environment_s = 0.0
    #: How many steps and episodes there were in all starts, where they are counted.
    steps = episodes = 0
    #: Whether a SystemExit may come from the program, and not from an environment.
    may_exit = True

    def environment_begins(self) -> None:
        """Called when an environment is about to be made, to start an episode or to step."""

    def environment_returned(self) -> None:
        """Called when it has done so, or has failed."""

    def on_restart(self, message: str) -> None:
        """Called when an environment has failed and will be made again, with the log message."""

    def on_lost(self, message: str) -> None:
        """Called when one environment of several is not made again, and the others play on."""

    def on_doubt(self, message: str) -> None:
        """Called with a possible fault of an environment; it is logged by default."""
        _log.warning("doubtful: %s", message)

    def on_connected(self) -> None:
        """Called when the server has answered the first state of a session."""

    def on_disconnected(self) -> None:
        """Called when the connection was lost in the middle of an episode."""

    def on_step(self, count: int = 1) -> None:
        """Called when the environments have taken ``count`` steps."""

    def on_episode(self, summary: EpisodeSummary) -> None:
        """Called when an episode is over."""


class Step(NamedTuple):
    """The result of one action.

    ``state``: numbers, an array, or a dictionary of arrays. ``is_terminated``: the episode has come
    to its end; ``is_truncated``: it was cut short, for example by a time limit, and would have gone
    on from ``state``. ``executed``: the executed action, in the server's form, if it may differ
    from the argument of ``apply``. ``episode_info``: of the last step of an episode, numbers of
    the simulator's own by name.
    """

    reward: float
    state: Any
    is_terminated: bool
    is_truncated: bool
    executed: Any = None
    episode_info: Mapping[str, float] = MappingProxyType({})


class Simulator(Protocol):
    """A simulator, a game or a machine, in its own process.

    The spaces are as on the wire (docs/protocol.md), for example ``{"type": "Discrete", "n": 2}``;
    None: the server checks nothing.
    """

    name: str
    observation_space: dict[str, Any] | None
    action_space: dict[str, Any] | None

    def restart(self) -> Any:
        """Start an episode and return its first state."""

    def apply(self, action: Any) -> Step:
        """Make a step with the server's action."""

    def close(self) -> None:
        """Release the simulator's resources."""


class RunOutcome(enum.Enum):
    """Why a run of episodes ended."""

    FINISHED = "the episodes that were asked for are over"
    TRAINING_OVER = "the server said that the training is over"
    SERVER_LOST = "the server answered once, and then no more"
    UNREACHED = "the server never answered"
    UNUSABLE = "the environment cannot be made or used"
    FAILED = "an error ended it"
    #: The parent of an environment process decides what follows.
    FAULT = "its environment has failed, and may be made again"
    FAILED_TOO_OFTEN = "an environment has failed again and again"


@dataclass(frozen=True)
class RunResult:
    """Why a run ended, and the words for it."""

    outcome: RunOutcome
    message: str


def result_of_failure(failure: Failure, was_connected: bool) -> RunResult:
    """Return how a run ends by a failure to start an episode."""
    if failure.code == ErrorCode.ALGORITHM:
        return RunResult(RunOutcome.FAILED, failure.message)
    if failure.is_refusal:
        return RunResult(RunOutcome.UNUSABLE, failure.message)
    if failure.training_is_over:
        return RunResult(RunOutcome.TRAINING_OVER, failure.message)
    outcome = RunOutcome.SERVER_LOST if was_connected else RunOutcome.UNREACHED
    return RunResult(outcome, failure.message)
