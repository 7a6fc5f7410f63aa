"""How many workers there are, and what no two RLX servers share."""

import socket
from itertools import islice
from types import SimpleNamespace

import pytest

from relaax.algorithm_base import ConfigBase
from relaax.configuration import RlxServerOptions
from relaax.processes.cgroups import usable_cores
from relaax.server.rlx_server.wiring import (
    first_connection_mib,
    seeds_of_workers,
    shared_workers_of,
)


def workers(written, gpu=False):
    options = RlxServerOptions(**{"--workers": written})
    return shared_workers_of(options, SimpleNamespace(uses_gpu=lambda: gpu))


@pytest.mark.parametrize("gpu", [False, True])
def test_a_number_of_workers_is_taken_as_it_is(gpu):
    assert workers(3, gpu) == 3
    assert workers("connection", gpu) is None


def test_the_automatic_number_is_one_for_each_core_that_may_be_used():
    assert workers("auto") == usable_cores()


def test_one_worker_has_the_gpu():
    assert workers("auto", gpu=True) == 1


def mib_of(config, **written):
    options = RlxServerOptions(**{f"--{key.replace('_', '-')}": v for key, v in written.items()})
    return first_connection_mib(options, config)


def test_a_first_connection_needs_more_memory_with_a_worker_of_its_own():
    config = ConfigBase({})
    assert mib_of(config, workers="connection") == 128.0
    assert mib_of(config, workers="auto") == 1.0
    assert mib_of(config, workers=2) == 1.0
    for workers in ("connection", "auto"):
        assert mib_of(config, workers=workers, worker_memory=7.5) == 7.5


def test_large_states_need_the_memory_of_two_rollouts():
    class Pictures(ConfigBase):
        def observation_space(self):
            picture = {"type": "Box", "shape": [84, 84, 4]}
            return {"type": "Dict", "spaces": {"left": picture, "right": picture}}

        def rollout_steps(self):
            return 20

    expected_mib = 2 * 20 * 2 * 84 * 84 * 4 * 4 / 2**20
    assert mib_of(Pictures({}), workers=2) == pytest.approx(expected_mib)
    assert mib_of(Pictures({}), workers="connection") == 128.0
    assert mib_of(Pictures({}), workers=2, worker_memory=7.5) == 7.5


def test_rollouts_of_da3c_have_episode_len_steps(da3c):
    settings = {"state_size": [4], "action_size": 2, "episode_len": 20}
    assert da3c.Config(settings).rollout_steps() == 20
    assert da3c.Config({**settings, "learn": False}).rollout_steps() == 1


def test_seeds_of_two_rlx_servers_are_far_apart():
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        first, second = (list(islice(seeds_of_workers(each, None), 3)) for each in (one, other))
        again = list(islice(seeds_of_workers(one, None), 3))
        assert first == again, "they are the same after a restart"
    assert [seed - first[0] for seed in first] == [0, 1, 2]
    assert abs(first[0] - second[0]) >= 2**32


def test_with_a_seed_of_its_own_a_server_has_the_same_numbers_at_any_address():
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        first, second = (list(islice(seeds_of_workers(each, 7), 3)) for each in (one, other))
        third = list(islice(seeds_of_workers(one, 8), 3))
    assert first == second
    assert abs(first[0] - third[0]) >= 2**32
