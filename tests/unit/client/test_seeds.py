"""Seeds of environments: no two environments share one, and the first start can be repeated."""

import itertools

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from relaax.client.run_options import parse_options
from relaax.client.seeds import EnvironmentSeeds, seeds_of_this_program
from relaax.client.vector_client import VectorClient
from relaax.client.vector_runner import VectorRunner

REQUIRED = ("--rlx-server", "localhost:1", "--env", "CartPole-v1", "--count", "8")


def seeds_of_copy(copy, monkeypatch, seed="1"):
    monkeypatch.setenv("RELAAX_COPY", str(copy))
    seeds = parse_options([*REQUIRED, "--seed", seed]).seeds
    return [seeds.of(index) for index in range(8)]


@pytest.mark.parametrize("seeds", [["1"] * 8, [str(copy) for copy in range(8)]])
def test_eight_copies_of_eight_environments_begin_in_different_states(monkeypatch, seeds):
    environment = gymnasium.make("CartPole-v1")
    drawn = [
        each for copy, seed in enumerate(seeds) for each in seeds_of_copy(copy, monkeypatch, seed)
    ]
    first = [environment.reset(seed=each)[0] for each in drawn]
    environment.close()
    assert len(first) == 64
    assert not any(np.array_equal(one, other) for one, other in itertools.combinations(first, 2))


def test_a_program_that_starts_again_begins_in_other_states_and_its_first_start_is_repeated(
    monkeypatch,
):
    first = seeds_of_copy(3, monkeypatch)
    assert seeds_of_copy(3, monkeypatch) == first
    monkeypatch.setenv("RELAAX_INCARNATION", "1")
    assert not set(seeds_of_copy(3, monkeypatch)) & set(first)


def test_two_lines_of_a_procfile_with_one_seed_play_other_episodes(monkeypatch):
    monkeypatch.setenv("RELAAX_LINE", "env-a")
    first = seeds_of_copy(0, monkeypatch)
    monkeypatch.setenv("RELAAX_LINE", "env-b")
    assert not set(seeds_of_copy(0, monkeypatch)) & set(first)


def test_an_environment_that_is_made_again_or_evaluates_has_a_seed_of_its_own():
    training, evaluating = EnvironmentSeeds(1), EnvironmentSeeds(1, evaluates=True)
    assert len({training.of(0), training.of(0, restarts=1), evaluating.of(0)}) == 3


def test_without_a_seed_environments_have_no_seeds():
    assert EnvironmentSeeds(None).of(0) is None


def test_a_variable_that_is_no_number_is_named(monkeypatch, capsys):
    monkeypatch.setenv("RELAAX_COPY", "first")
    with pytest.raises(SystemExit) as ended:
        seeds_of_this_program(1)
    assert ended.value.code == 2
    assert "RELAAX_COPY must be a whole number from 0 on, is 'first'" in capsys.readouterr().err


def test_each_environment_of_a_connection_gets_the_seed_that_is_its_own(server):
    environments = SyncVectorEnv(
        [lambda: gymnasium.make("CartPole-v1")] * 3, autoreset_mode=AutoresetMode.SAME_STEP
    )
    with VectorClient(server.url, 3) as client:
        VectorRunner(environments, client, seed=[5, 900, 17]).run(episodes=1)
    environments.close()
    alone = gymnasium.make("CartPole-v1")
    expected = [alone.reset(seed=seed)[0] for seed in (5, 900, 17)]
    alone.close()
    np.testing.assert_array_equal(server.steps[0].observations, expected)
