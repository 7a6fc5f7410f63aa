"""The process that asks whether the training is over."""

from types import SimpleNamespace

import pytest

from relaax.algorithm_base import Phase
from relaax.errors import BridgeError
from relaax.server.rlx_server import watcher
from relaax.server.rlx_server.tally import Tally
from relaax.server.rlx_server.watcher import TRAINING_IS_OVER, watch_parameter_server


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

    def close(self):
        self.is_closed = True


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(watcher, "WATCH_INTERVAL_S", 0.0)


def watch(*answers):
    stub = Stub(answers)
    status = watch_parameter_server(SimpleNamespace(stub=lambda: stub), Tally().state)
    assert stub.is_closed
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
