"""The process that asks whether the training is over."""

from types import SimpleNamespace

import pytest

from relaax.algorithm_base import Phase
from relaax.errors import BridgeError
from relaax.server.rlx_server import watcher
from relaax.server.rlx_server.tally import Cell, Tally
from relaax.server.rlx_server.watcher import (
    PARAMETER_SERVER_IS_GONE,
    TRAINING_IS_OVER,
    watch_parameter_server,
)


class Stub:
    """Answers with one phase after the other, or raises it."""

    def __init__(self, answers):
        self._answers = iter(answers)
        self.is_closed = False

    def phase(self):
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def places(self, environments):
        return [number + 40 for number in environments]

    def wait_at_most(self, seconds):
        assert seconds <= 1

    def close(self):
        self.is_closed = True


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(watcher, "WATCH_INTERVAL_S", 0.0)


def watch(*answers, tally=None, give_up_s=60.0):
    stub, tally = Stub(answers), tally or Tally()
    settings = SimpleNamespace(stub=lambda: stub, give_up_s=give_up_s)
    status = watch_parameter_server(settings, tally.state, tally.places)
    assert stub.is_closed == (status == TRAINING_IS_OVER)
    return status


def test_the_watcher_ends_when_the_parameter_server_closes():
    assert watch(Phase.TRAINING, Phase.SERVING, Phase.CLOSING) == TRAINING_IS_OVER


def test_a_refusal_is_logged_and_asked_again(caplog):
    assert watch(BridgeError("not now"), Phase.CLOSING) == TRAINING_IS_OVER
    assert "not now" in caplog.text


def test_the_same_refusal_is_logged_once(caplog):
    refusals = [BridgeError("not now"), BridgeError("not now"), BridgeError("never")]
    assert watch(*refusals, Phase.CLOSING) == TRAINING_IS_OVER
    assert caplog.messages == ["not now", "never"]


def test_it_is_known_when_the_parameter_server_answered_and_when_it_did_not():
    tally = Tally()
    state = tally.state
    watch(Phase.TRAINING, BridgeError("away"), Phase.CLOSING, tally=tally)
    assert 0 < state[Cell.PARAMETER_SERVER_ANSWERED] < state[Cell.PARAMETER_SERVER_WAS_AWAY]


def test_a_server_that_missed_the_end_gives_up_when_the_parameter_server_is_away_for_long(caplog):
    refusals = [BridgeError("away")] * 10_000
    status = watch(Phase.TRAINING, *refusals, give_up_s=0.001)
    assert status == PARAMETER_SERVER_IS_GONE
    assert "was away for 0.001 s (--give-up)" in caplog.text


def test_a_parameter_server_that_has_not_started_yet_is_waited_for():
    refusals = [BridgeError("away")] * 10
    assert watch(*refusals, Phase.CLOSING) == TRAINING_IS_OVER


def test_a_server_without_any_answer_gives_up_when_that_lasts_for_long(caplog):
    refusals = [BridgeError("away")] * 10_000
    assert watch(*refusals, give_up_s=0.001) == PARAMETER_SERVER_IS_GONE
    assert "could not be used within 0.001 s of the start (--give-up)" in caplog.text


def test_environments_get_their_places_among_those_of_all_rlx_servers():
    tally = Tally()
    places = tally.row(tally.take()).places
    first, second = places.take(2).tolist()
    assert [places.in_training(each) for each in (first, second)] == [0, 1]
    watch(Phase.TRAINING, Phase.CLOSING, tally=tally)
    assert [places.in_training(each) for each in (first, second)] == [40, 41]
