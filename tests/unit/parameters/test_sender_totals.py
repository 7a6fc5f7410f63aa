"""What was counted of each sender goes with a checkpoint, and agrees with its global step."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaax.parameters import sender_totals
from relaax.parameters.sender_totals import SenderTotals


class Counter:
    """A global step."""

    def __init__(self, step=0):
        self.step = step
        self._lock = threading.Lock()

    def add(self, steps):
        with self._lock:
            self.step += steps
            return self.step


class Sender:
    """Sends steps; those of a call without an answer are sent again with the next ones."""

    def __init__(self, number):
        self.number, self.answered, self.waiting = number, 0, 0

    def send(self, steps, totals, add, is_answered=True):
        self.waiting += steps
        totals.count(self.number, self.waiting, self.answered + self.waiting, add)
        if is_answered:
            self.answered, self.waiting = self.answered + self.waiting, 0


_SENDERS = (1, 2**63)

_ACTIONS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(_SENDERS), st.integers(1, 3), st.booleans()),
    st.tuples(st.just("save")),
    st.tuples(st.just("start again")),
)


@given(st.lists(_ACTIONS, max_size=40))
def test_what_a_call_brings_is_counted_unless_it_is_in_the_restored_checkpoint(actions):
    senders = {number: Sender(number) for number in _SENDERS}
    totals, there, saved = SenderTotals(), set(), (set(), {})
    for action in actions:
        if action[0] == "send":
            _, number, steps, is_answered = action
            sender, brought = senders[number], []
            already = sender.answered + sender.waiting + steps
            brought = {(number, step) for step in range(sender.answered, already)}
            counted = []
            sender.send(steps, totals, lambda new, to=counted: to.append(new) or 0, is_answered)
            assert counted == [len(brought - there)]
            there |= brought
        elif action[0] == "save":
            with totals.recording():
                saved = set(there), totals.as_of(0)
        else:
            totals = SenderTotals()
            there = set(saved[0])
            totals.restore(saved[1])


def test_what_is_saved_while_calls_come_adds_up_to_the_global_step_of_the_checkpoint():
    totals, counter, ends = SenderTotals(), Counter(), threading.Event()

    def play(number):
        sender = Sender(number)
        while not ends.is_set():
            sender.send(number, totals, counter.add, is_answered=sender.waiting > 3)

    with ThreadPoolExecutor(8) as threads:
        players = [threads.submit(play, number) for number in range(1, 9)]
        try:
            for _ in range(300):
                with totals.recording():
                    step = counter.step
                    assert sum(totals.as_of(step).values()) == step
        finally:
            ends.set()
        for player in players:
            player.result()
    assert counter.step > 0


def test_a_call_that_has_added_its_steps_and_not_returned_is_in_the_checkpoint():
    totals, counter = SenderTotals(), Counter()
    has_added, goes_on = threading.Event(), threading.Event()

    def slow(steps):
        step = counter.add(steps)
        has_added.set()
        goes_on.wait(20)
        return step

    totals.count(7, 5, 5, counter.add)
    with ThreadPoolExecutor(2) as threads, totals.recording():
        call = threads.submit(totals.count, 7, 3, 8, slow)
        assert has_added.wait(20)
        found = threads.submit(totals.as_of, counter.step)
        goes_on.set()
        assert found.result(20) == {7: 8}
        assert call.result(20) == 8


def test_calls_after_a_checkpoint_was_made_are_not_in_it():
    totals, counter = SenderTotals(), Counter()
    totals.count(7, 5, 5, counter.add)
    with totals.recording():
        made_at = counter.step
        totals.count(7, 3, 8, counter.add)
        totals.count(9, 2, 2, counter.add)
        assert totals.as_of(made_at) == {7: 5}
        assert totals.as_of(counter.step) == {7: 8, 9: 2}
    with totals.recording():
        assert totals.as_of(counter.step) == {7: 8, 9: 2}


def test_an_algorithm_that_holds_up_calls_while_it_saves_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(sender_totals, "CALL_S", 0.05)
    totals, counter, saves, waits = SenderTotals(), Counter(), threading.Lock(), threading.Event()

    def add(steps):
        waits.set()
        with saves:
            return counter.add(steps)

    with ThreadPoolExecutor(1) as threads:
        with totals.recording(), saves:
            call = threads.submit(totals.count, 7, 5, 5, add)
            assert waits.wait(20)
            assert totals.as_of(counter.step) == {}
        assert call.result(20) == 5


def test_nothing_is_said_without_a_recording_which_may_lie_within_another():
    totals = SenderTotals()
    totals.count(7, 5, 5, Counter().add)
    assert totals.as_of(5) == {}
    with totals.recording():
        with totals.recording():
            assert totals.as_of(5) == {7: 5}
        assert totals.as_of(5) == {7: 5}
    assert totals.as_of(5) == {}


def test_the_latest_senders_are_saved_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(sender_totals, "MOST_SAVED", 2)
    totals, counter = SenderTotals(), Counter()
    for number in (3, 1, 2, 3):
        totals.count(number, 1, 9, counter.add)
    with totals.recording():
        assert list(totals.as_of(counter.step).items()) == [(2, 9), (3, 9)]


def test_what_was_answered_and_lost_does_not_come_back_with_the_next_call():
    totals, counter = SenderTotals(), Counter(20)
    totals.restore({7: 20})
    assert totals.count(7, 5, 105, counter.add) == 25  # 80 were answered after the checkpoint
    assert totals.count(7, 5, 105, counter.add) == 25
    assert totals.count(7, 2, 107, counter.add) == 27


@pytest.mark.parametrize("restored", [{}, {7: 4}])
def test_an_older_checkpoint_takes_the_place_of_what_was_known(restored):
    totals, counter = SenderTotals(), Counter()
    totals.count(7, 5, 5, counter.add)
    totals.count(9, 5, 5, counter.add)
    totals.restore(restored)
    counter.step = sum(restored.values())
    totals.count(7, 5, 5, counter.add)
    assert totals.count(9, 5, 5, counter.add) == 10
