"""How a run of episodes ended."""

import enum
from dataclasses import dataclass

from relaax.client.failure import Failure
from relaax.protocol.binary import ErrorCode


class RunOutcome(enum.Enum):
    """Why a run of episodes ended."""

    FINISHED = "the episodes that were asked for are over"
    STOPPED = "it was asked to stop"
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


STOPPED = RunResult(RunOutcome.STOPPED, "stopped")


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
