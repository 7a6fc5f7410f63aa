"""The messages of several connections as one."""

from types import SimpleNamespace

import numpy as np
import pytest

from relaax.server.rlx_server.worker.batch import Request, joined
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps

CUT = TRUNCATED | FINAL


def request(slots, environments, flags, observations=(), finals=()):
    """Return a request of a connection whose environments are at ``slots``."""
    return Request(
        SimpleNamespace(slots=np.array(slots)),
        Steps(
            np.array(environments),
            np.array(flags, np.uint8),
            np.array(environments) + 0.5,
            observations,
            finals,
        ),
    )


def floats(*values):
    return np.array(values, np.float32).reshape(-1, 1)


def test_environments_become_the_workers_slots_in_the_order_of_the_messages():
    batch = joined([request([7, 8, 9], [2, 0], [0, START]), request([3, 4], [1], [TERMINATED])])
    assert batch.slots.tolist() == [9, 7, 4]
    assert batch.flags.tolist() == [0, START, TERMINATED]
    assert batch.rewards.tolist() == [2.5, 0.5, 1.5]


def test_one_message_is_not_copied():
    alone = request([7, 8, 9], [2, 0], [0, 0], floats(1, 2))
    batch = joined([alone])
    assert batch.slots.tolist() == [9, 7]
    assert batch.flags is alone.steps.flags
    assert batch.rewards is alone.steps.rewards
    assert batch.states == [alone.steps.observations]


def test_states_are_those_of_the_messages_that_have_some():
    first, second = floats(1, 2), [["any"]]
    batch = joined(
        [
            request([0, 1], [0, 1], [0, 0], first),
            request([2], [0], [TERMINATED]),
            request([3], [0], [0], second),
        ]
    )
    assert batch.states == [first, second]
    assert batch.finals == []


@pytest.mark.parametrize("form", [np.array, list])
def test_last_states_of_terminated_episodes_are_left_out(form):
    flags = [TERMINATED | FINAL, CUT, 0, CUT | START, TERMINATED | FINAL | START]
    finals = form([[10.0], [11.0], [12.0], [13.0]])
    batch = joined([request(range(5), range(5), flags, form([[1.0], [2.0], [3.0]]), finals)])
    (found,) = batch.finals
    assert np.asarray(found).tolist() == [[11.0], [12.0]]


def test_last_states_keep_the_order_of_their_messages():
    batch = joined(
        [
            request([0], [0], [CUT], (), floats(10)),
            request([1], [0], [0], floats(1)),
            request([2], [0], [CUT], (), floats(12)),
        ]
    )
    assert np.concatenate(batch.finals).ravel().tolist() == [10, 12]
