"""A policy that a builder brings, with numbers of its own beside its choices."""

from contextlib import closing
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from learning_parts import Driven, Kept
from processes import REPOSITORY

from relaax.algorithm_base import NullMetrics, NullSaver
from relaax.assembly import Assembly
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.model import Choice
from relaax.replay.schema import Column
from relaax.steps import START, Steps

SECTION = {"state_size": [3], "action_size": 2, "hidden_layers": [8], "episode_len": 5}


@dataclass
class Last:
    """Always chooses action 1, in a mood that counts its batches."""

    names: tuple
    moods: int = 0

    def batch_size(self, count):
        return count

    def choose(self, parameters, observations, recurrent_state, noise):
        self.moods += 1
        count = len(observations)
        extras = {
            "log_probability": np.zeros(count, np.float32), "mood": np.full(count, self.moods)
        }  # fmt: skip
        return Choice(np.ones(count, np.int64), extras, recurrent_state)


def test_its_choices_are_taken_and_its_numbers_recorded():
    ppo = load_algorithm(REPOSITORY / "algorithms" / "ppo").module

    class Config(ppo.Config):
        own_extras = MappingProxyType({"mood": Column(np.dtype(np.int64))})

    class Builder(ppo.Builder):
        def policy(self, seed):
            return replace(super().policy(seed), model=lambda tensors, names: Last(names))

    assembly, config, kept = Assembly(Builder), Config(SECTION), Kept()
    assert assembly.replay_spec(config).schema.columns["mood"].dtype == np.int64
    server = assembly.parameter_server(config, NullSaver(), NullMetrics()).bridge()
    with closing(assembly.make_batch_agent(config, server, 1, False, kept)) as agent:
        driven = Driven(agent)
        slots, states = driven.open(2), np.zeros((2, 3), np.float32)
        for flag in (START, 0, 0):
            flags = np.full(2, flag, np.uint8)
            actions = driven.act(Steps(slots, flags, np.zeros(2), states, states[:0]))
            assert actions.tolist() == [1, 1]
    moods = [mood for steps in kept.rollouts for mood in steps.columns["mood"].tolist()]
    assert moods[:4] == [1, 1, 2, 2]
