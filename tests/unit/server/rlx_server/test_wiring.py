"""How many workers there are, and what no two RLX servers share."""

import os
import socket
from itertools import islice
from types import SimpleNamespace

import pytest

from relaax.server.common.configuration import RlxServerOptions
from relaax.server.rlx_server.wiring import _seeds, _shared_workers


def workers(written, gpu=False):
    options = RlxServerOptions(**{"--workers": written})
    return _shared_workers(options, SimpleNamespace(uses_gpu=lambda: gpu))


@pytest.mark.parametrize("gpu", [False, True])
def test_a_number_of_workers_is_what_it_says(gpu):
    assert workers(3, gpu) == 3
    assert workers("connection", gpu) is None


def test_the_automatic_number_is_one_for_each_core_that_may_be_used():
    assert workers("auto") == len(os.sched_getaffinity(0))


def test_one_worker_has_the_gpu():
    assert workers("auto", gpu=True) == 1


def test_seeds_of_two_rlx_servers_are_far_apart():
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        first, second = (list(islice(_seeds(each, None), 3)) for each in (one, other))
        assert first == list(islice(_seeds(one, None), 3)), "they are the same after a restart"
    assert [seed - first[0] for seed in first] == [0, 1, 2]
    assert abs(first[0] - second[0]) >= 2**32


def test_with_a_seed_of_its_own_a_server_has_the_same_numbers_at_any_address():
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        first, second = (list(islice(_seeds(each, 7), 3)) for each in (one, other))
        third = list(islice(_seeds(one, 8), 3))
    assert first == second
    assert abs(first[0] - third[0]) >= 2**32
