"""Learning beside acting: what waits, what is dropped, and what is raised."""

import threading
from functools import partial
from itertools import count

import numpy as np
import pytest
from learner_parts import Learning, Restarted, parameter_service, rollouts_of
from learning_parts import wait_until

from relaax.learning.placements import OnThread, thread


@pytest.fixture(name="background")
def _background():
    learning = Learning()
    learning.learner = OnThread(learning.driver, learning.bridge.stored, 2, drops=True)
    yield learning
    learning.bridge.goes_on.set()
    learning.learner.close()


def put(learning, times):
    for _ in range(times):
        learning.learner.put(rollouts_of())


def test_where_rollouts_are_dropped_nothing_waits_for_learning(background):
    background.bridge.goes_on.clear()
    put(background, 100)
    assert background.bridge.gradients == []
    background.bridge.goes_on.set()
    wait_until(lambda: len(background.bridge.gradients) >= 2)


def test_rollouts_that_there_is_no_time_for_are_dropped_and_counted(background):
    """Of 100 rollouts each is learnt from or counted as dropped; the global step counts all."""

    def dropped():
        return background.bridge.stored.sum_of("learner/rollouts dropped")

    background.bridge.goes_on.clear()
    put(background, 100)
    background.bridge.goes_on.set()
    wait_until(lambda: dropped() + sum(each.count for each in background.rollouts) == 100)
    assert dropped() > 50
    wait_until(lambda: background.global_t() == 300)


def test_steps_dropped_while_the_parameter_server_was_away_are_not_counted(background):
    """The one that is there again goes on from its last checkpoint, here step 0."""
    background.bridge.goes_on.clear()
    put(background, 1)
    wait_until(lambda: background.rollouts)  # the learner has begun; what follows is dropped
    put(background, 100)
    again = parameter_service()
    background.bridge.service = Restarted(again)
    background.bridge.goes_on.set()
    wait_until(lambda: len(background.bridge.gradients) >= 3)
    background.learner.close()
    learnt = sum(each.steps for each in background.rollouts)
    assert again.increment_global_t(0) <= learnt < 150


def test_waiting_rollouts_are_learnt_from_together_up_to_the_limit(background):
    background.bridge.goes_on.clear()
    put(background, 10)
    background.bridge.goes_on.set()
    wait_until(lambda: len(background.rollouts) >= 4)
    assert max(rollouts.count for rollouts in background.rollouts) == 2


def test_rollouts_of_another_kind_are_learnt_from_apart(background):
    """Bytes would become floats that are not scaled as bytes are."""
    background.bridge.goes_on.clear()
    put(background, 1)
    wait_until(lambda: background.rollouts)  # the learner has begun
    put(background, 1)
    background.learner.put(rollouts_of(dtype=np.uint8))
    background.bridge.goes_on.set()
    wait_until(lambda: len(background.rollouts) >= 3)
    kinds = [(each.count, each.kind) for each in background.rollouts]
    assert sorted(kinds, key=str) == [(1, np.float32), (1, np.float32), (1, np.uint8)]


def test_rollouts_that_come_at_once_are_learnt_from_up_to_the_limit(background):
    background.learner.put(rollouts_of(count=5, versions=[0, 1, 2, 3, 4]))
    wait_until(lambda: sum(each.count for each in background.rollouts) == 5)
    assert sorted(each.versions.tolist() for each in background.rollouts) == [[0, 1], [2, 3], [4]]


def test_where_rollouts_are_dropped_the_newest_are_learnt_from_first(background):
    """Where learning does not keep up, they are of the policy that is nearest to the one in use."""
    background.bridge.goes_on.clear()
    background.learner.put(rollouts_of(versions=[0]))
    wait_until(lambda: background.rollouts)  # the learner has begun
    for version in range(1, 7):
        background.learner.put(rollouts_of(versions=[version]))
    background.bridge.goes_on.set()
    wait_until(lambda: len(background.rollouts) == 4)
    learnt = [each.versions.tolist() for each in background.rollouts]
    assert learnt == [[0], [6, 5], [4, 3], [2, 1]]


def test_in_the_background_updates_are_prepared_and_in_the_foreground_not(background):
    background.learner.warm_up()
    assert background.model.prepared == [2]
    foreground = Learning()
    foreground.sink.warm_up()
    assert foreground.model.prepared == []


def waiting_learner(learning, **options):
    """Return one that acting waits for."""
    return OnThread(learning.driver, learning.bridge.stored, 2, **options)


class Noting(threading.Condition):
    """Takes note of what waits of this thread return."""

    def __init__(self):
        super().__init__()
        self.waits = []
        self._thread = threading.current_thread()

    def wait(self, timeout=None):
        came = super().wait(timeout)
        if threading.current_thread() is self._thread:
            self.waits.append(came)
        return came


def has_ended():
    """Return whether no learner runs."""
    return all(thread.name != "learner" for thread in threading.enumerate())


def test_acting_waits_for_a_learner_that_does_not_keep_up_and_nothing_is_dropped():
    learning = Learning()
    learner = waiting_learner(learning)
    learning.bridge.goes_on.clear()
    done = []
    putting = threading.Thread(
        target=lambda: [done.append(learner.put(rollouts_of())) for _ in range(20)]
    )
    putting.start()
    wait_until(lambda: learning.rollouts and len(done) >= 2)
    putting.join(0.1)
    assert putting.is_alive()
    assert len(done) <= 3, "one update is made, and less than another is queued"
    assert len(learning.rollouts) == 1
    learning.bridge.goes_on.set()
    putting.join(30)
    wait_until(lambda: sum(each.count for each in learning.rollouts) == 20)
    assert learning.bridge.stored.sum_of("learner/rollouts dropped") == 0
    learner.close()


def test_a_learner_that_takes_nothing_is_waited_for_once_until_it_goes_on(monkeypatch):
    monkeypatch.setattr(thread, "FULL_QUEUE_DEADLINE_S", 0.1)
    learning = Learning()
    learner = waiting_learner(learning, changed=(changed := Noting()))
    learning.bridge.goes_on.clear()
    for _ in range(50):
        learner.put(rollouts_of())
    assert changed.waits.count(False) == 1
    learning.bridge.goes_on.set()

    def dropped():
        return learning.bridge.stored.sum_of("learner/rollouts dropped")

    wait_until(lambda: dropped() + sum(each.count for each in learning.rollouts) == 50)
    assert dropped() >= 35
    learner.close()


def test_one_put_waits_for_no_longer_than_the_deadline_however_many_updates_it_makes(monkeypatch):
    """A clock that shows two seconds more at each look, and a learner that is always slow."""
    monkeypatch.setattr(thread, "FULL_QUEUE_DEADLINE_S", 5.0)
    monkeypatch.setattr(thread, "monotonic", partial(next, count(0, 2)))
    learning = Learning()
    learner = waiting_learner(learning, changed=(changed := threading.Condition()))
    learning.bridge.goes_on.clear()
    learner.put(rollouts_of())
    wait_until(lambda: learning.rollouts)  # the learner has begun, and takes no more
    waits = []
    with monkeypatch.context() as slow:
        slow.setattr(changed, "wait", lambda left: waits.append(left) or True)
        learner.put(rollouts_of(count=8))
    assert waits == [3, 1]
    learning.bridge.goes_on.set()
    wait_until(lambda: sum(each.count for each in learning.rollouts) == 9)
    learner.close()


def test_where_acting_waits_rollouts_are_learnt_from_in_the_order_of_arrival(monkeypatch):
    """Pieces of two and of one, for updates of three: none is passed over by newer ones."""
    monkeypatch.setattr(thread, "FULL_QUEUE_DEADLINE_S", 0.05)
    learning = Learning()
    bridge = learning.bridge
    learner = OnThread(learning.driver, bridge.stored, 3)
    bridge.goes_on.clear()
    learner.put(rollouts_of())
    wait_until(lambda: learning.rollouts)  # the learner has begun
    for version, size in enumerate([2, 2, 1, 2, 2], start=1):
        learner.put(rollouts_of(size, versions=version))
    bridge.goes_on.set()
    wait_until(lambda: sum(each.count for each in learning.rollouts) == 10)
    learnt = [each.versions.tolist() for each in learning.rollouts]
    assert learnt == [[0], [1, 1], [2, 2, 3], [4, 4], [5, 5]]
    learner.close()


def test_an_error_of_the_learner_ends_waiting():
    learning = Learning()
    learner = waiting_learner(learning)
    learning.bridge.goes_on.clear()
    learning.bridge.error = RuntimeError("the parameter server refused")
    threading.Timer(0.2, learning.bridge.goes_on.set).start()
    with pytest.raises(RuntimeError, match="refused"):
        learner.put(rollouts_of(count=20, versions=[0] * 20))
    learner.close()


def test_a_learner_that_closes_begins_no_other_pass(monkeypatch):
    learning = Learning(passes=50)
    learner = OnThread(learning.driver, learning.bridge.stored, 2)
    learning.bridge.goes_on.clear()
    learner.put(rollouts_of())
    wait_until(lambda: learning.rollouts)
    closing, stops = threading.Thread(target=learner.close), threading.Event()
    stop = learning.driver.stop
    monkeypatch.setattr(learning.driver, "stop", lambda: (stop(), stops.set()))
    closing.start()
    assert stops.wait(30)
    learning.bridge.goes_on.set()
    closing.join(30)
    assert has_ended()
    assert len(learning.bridge.gradients) == 1


def test_an_error_of_the_learner_is_raised_where_it_is_noticed_and_logged_by_its_caller_alone(
    background, caplog
):
    background.bridge.error = RuntimeError("the parameter server refused")
    put(background, 1)
    wait_until(has_ended)
    with pytest.raises(RuntimeError, match="refused"):
        put(background, 1)
    background.learner.close()
    assert "Traceback" not in caplog.text


def test_an_error_of_the_learner_that_is_never_raised_is_logged_at_the_end(background, caplog):
    background.bridge.error = RuntimeError("the parameter server refused")
    put(background, 1)
    wait_until(has_ended)
    background.learner.close()
    assert caplog.text.count("Traceback") == 1
    assert "the parameter server refused" in caplog.text
