"""What a fuzzer starts from, and what it has found, raises what is promised and nothing else."""

import logging
import random

import pytest
from fuzz import services
from fuzz.targets import CORPUS, TARGETS, seeds

_SEEDS = [(target, seed) for target in TARGETS for seed in seeds(target)]


@pytest.fixture(autouse=True)
def _quick_and_quiet(caplog, monkeypatch):
    caplog.set_level(logging.CRITICAL)
    services.let_no_call_wait(monkeypatch.setattr)


@pytest.mark.parametrize(
    ("target", "seed"), _SEEDS, ids=lambda value: getattr(value, "name", value)
)
def test_a_seed_and_what_is_like_it_raises_what_is_promised(target, seed):
    data, chance = seed.read_bytes(), random.Random(1)
    TARGETS[target](data)
    for _ in range(4):
        spoilt = bytearray(data)
        spoilt[chance.randrange(len(data))] = chance.randrange(256)
        TARGETS[target](bytes(spoilt))
        TARGETS[target](data[: chance.randrange(len(data))])


def test_each_target_has_seeds_and_each_folder_of_seeds_a_target():
    assert {folder.name for folder in CORPUS.iterdir()} == set(TARGETS)
