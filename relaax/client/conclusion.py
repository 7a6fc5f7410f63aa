"""What a program reports at the end of its run: a few lines, and an exit status."""

import sys
from collections.abc import Sequence

from relaax.client.run_result import RunOutcome, RunResult


def conclude(
    results: Sequence[RunResult], server: str, *, was_connected: bool, was_stopped: bool
) -> int:
    """Print how a run with these ``results`` ended and return the exit status.

    0: the episodes or the training are over, the run was stopped, or the server answered once and
    then no more: one that speaks version 1 closes so when the training is over. 1: the server was
    never reached, or an error ended a process. 2: an environment cannot be made or used.
    """
    if was_stopped:
        print("stopped")
        return 0
    for outcome, status in ((RunOutcome.UNUSABLE, 2), (RunOutcome.FAILED, 1)):
        if _with(outcome, results):
            _complain(outcome, results)
            return status
    if _with(RunOutcome.TRAINING_OVER, results):
        print(f"the RLX server at {server} says that the training is over")
        return 0
    if was_connected:
        if _with(RunOutcome.SERVER_LOST, results):
            print(
                f"the RLX server at {server} does not answer any more: it has died, or the "
                "training is over"
            )
        return 0
    print(f"there was never a session with the RLX server at {server}", file=sys.stderr)
    _complain(RunOutcome.UNREACHED, results)
    return 1


def _with(outcome: RunOutcome, results: Sequence[RunResult]) -> list[RunResult]:
    return [result for result in results if result.outcome is outcome]


def _complain(outcome: RunOutcome, results: Sequence[RunResult]) -> None:
    """Print each message once, on a line of its own."""
    messages = {" ".join(result.message.split()) for result in _with(outcome, results)}
    for message in sorted(messages):
        print(message, file=sys.stderr)
