"""When a learner publishes: by the clock, or by its steps."""

from clock import Clock

from relaax.server.learner.publishing import PublishClock


def test_by_the_clock_there_is_a_pause_between_two_publications():
    time = Clock()
    clock = PublishClock(0.5, clock=time)
    assert not clock.is_due(1)
    time.now += 0.5
    assert clock.is_due(2)
    clock.note(2)
    assert not clock.is_due(3)
    time.now += 0.4
    assert not clock.is_due(4)
    time.now += 0.2
    assert clock.is_due(5)


def test_by_steps_the_clock_does_not_count():
    time = Clock()
    clock = PublishClock(0.0, 3, time)
    due = []
    for step in range(1, 10):
        time.now += 10
        if clock.is_due(step):
            clock.note(step)
            due.append(step)
    assert due == [3, 6, 9]
