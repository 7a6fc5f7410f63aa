"""The parameter server knows who has heard that the training is over."""

from clock import Clock

from relaax.algorithm_base import Phase
from relaax.parameters.callers import LATELY_S, Listeners


def test_all_recent_callers_must_hear_of_the_end():
    listeners = Listeners(Clock(0.0))
    assert listeners.all_know(Phase.CLOSING)  # nobody is there
    for caller in ("a", "b"):
        listeners.tell(caller, Phase.TRAINING)
    listeners.tell("a", Phase.CLOSING)
    assert not listeners.all_know(Phase.CLOSING)
    listeners.tell("b", Phase.CLOSING)
    assert listeners.all_know(Phase.CLOSING)


def test_silent_callers_are_not_waited_for():
    clock = Clock(0.0)
    listeners = Listeners(clock)
    listeners.tell("gone", Phase.TRAINING)
    clock.now += LATELY_S / 2
    listeners.tell("here", Phase.TRAINING)
    listeners.tell("here", Phase.CLOSING)
    assert not listeners.all_know(Phase.CLOSING)
    clock.now += LATELY_S / 2 + 0.1
    assert listeners.all_know(Phase.CLOSING)
