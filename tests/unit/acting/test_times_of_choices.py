"""The time of each choice is split into what a server has said of it, and the way."""

import numpy as np
import pytest
from clock import Clock
from learning_parts import SMALL_COLUMNS, small_policy

from relaax.acting.choosing import Chooser
from relaax.algorithm_base.inference import ChoiceTimes, ServerTimes
from relaax.learning.distributions import Categorical
from relaax.learning.model import Choice


class Slow:
    """A model that takes a second, of which a server has had ``served``."""

    def __init__(self, clock, served):
        self._clock, self._served = clock, served

    def choose(self, parameters, observations, recurrent_state, noise):
        self._clock.now += 1.0
        actions = np.zeros(len(noise), np.int32)
        return Choice(actions, {}, recurrent_state, served=self._served)


@pytest.mark.parametrize(
    ("served", "times"),
    [
        (None, ChoiceTimes(inference=1.0)),
        (ServerTimes(0.25, 0.5), ChoiceTimes(inference=0.5, queue=0.25, network=0.25)),
    ],
    ids=["in this process", "at a server"],
)
def test_a_choice_is_split_into_its_parts(served, times):
    clock, watched = Clock(), []
    random = np.random.default_rng(1)
    chooser = Chooser(Slow(clock, served), Categorical(2), SMALL_COLUMNS, random, clock=clock)
    chooser.observer = watched.append
    chooser.choose(small_policy().current, np.arange(3), np.zeros((3, 2), np.float32))
    assert watched == [times]
