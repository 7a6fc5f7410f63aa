"""The last lines of a program, and its exit status."""

import pytest

from relaax.client.failure import Failure
from relaax.client.run_environments import conclude
from relaax.client.simulator import RunOutcome, RunResult, result_of_failure
from relaax.protocol.binary import ErrorCode

FINISHED = RunResult(RunOutcome.FINISHED, "2 episodes are over")
OVER = RunResult(RunOutcome.TRAINING_OVER, "the training is over")
LOST = RunResult(RunOutcome.SERVER_LOST, "gave up")
UNREACHED = RunResult(RunOutcome.UNREACHED, "cannot connect")
FAILED = RunResult(RunOutcome.FAILED, "KeyError:\n 'speed'")
TOO_OFTEN = RunResult(RunOutcome.FAILED_TOO_OFTEN, "environment 3 failed")
UNUSABLE = RunResult(RunOutcome.UNUSABLE, "there is no such environment")


@pytest.mark.parametrize(
    ("results", "was_connected", "was_stopped", "status", "out", "err"),
    [
        ([FINISHED, FINISHED], True, False, 0, "", ""),
        (
            [LOST, FINISHED],
            True,
            False,
            0,
            "at h:1 does not answer any more: it has died, or the training is over\n",
            "",
        ),
        ([LOST, UNREACHED], True, False, 0, "or the training is over\n", ""),
        ([LOST, OVER, UNREACHED], True, False, 0, "at h:1 says that the training is over\n", ""),
        ([OVER, FAILED], True, False, 1, "", "KeyError: 'speed'\n"),
        ([UNREACHED] * 3, False, False, 1, "", "h:1\ncannot connect\n"),
        ([FINISHED, FAILED, FAILED], True, False, 1, "", "KeyError: 'speed'\n"),
        ([TOO_OFTEN, TOO_OFTEN], True, False, 1, "", "environment 3 failed\n"),
        ([TOO_OFTEN, FINISHED], True, False, 1, "", "environment 3 failed\n"),
        ([TOO_OFTEN, OVER], True, False, 0, "at h:1 says that the training is over\n", ""),
        ([FAILED, UNUSABLE], True, False, 2, "", "there is no such environment\n"),
        ([UNUSABLE, FAILED], True, True, 0, "stopped\n", ""),
    ],
)
def test_the_worst_result_decides(capsys, results, was_connected, was_stopped, status, out, err):
    assert status == conclude(results, "h:1", was_connected=was_connected, was_stopped=was_stopped)
    printed = capsys.readouterr()
    assert printed.out.endswith(out)
    assert printed.err.endswith(err)
    assert (printed.out == "", printed.err == "") == (out == "", err == "")


@pytest.mark.parametrize(
    ("code", "was_connected", "outcome"),
    [
        (None, False, RunOutcome.UNREACHED),
        (None, True, RunOutcome.SERVER_LOST),
        (ErrorCode.GO_ELSEWHERE, False, RunOutcome.UNREACHED),
        (ErrorCode.TRAINING_IS_OVER, True, RunOutcome.TRAINING_OVER),
        (ErrorCode.MISMATCH, False, RunOutcome.UNUSABLE),
        (ErrorCode.MISMATCH, True, RunOutcome.UNUSABLE),
        (ErrorCode.ALGORITHM, False, RunOutcome.FAILED),
        (ErrorCode.ALGORITHM, True, RunOutcome.FAILED),
    ],
)
def test_a_failure_to_start_an_episode_is_a_result(code, was_connected, outcome):
    result = result_of_failure(Failure("why", code), was_connected)
    assert result == RunResult(outcome, "why")
