"""Clients that send too many messages a second: they go, and the worker and the others stay."""

import pytest
from served_worker import BinaryClient, Oracle, serve_batches

from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode
from relaax.server.rlx_server.limits import ClientLimits
from relaax.server.rlx_server.worker import loop
from relaax.steps import START


@pytest.fixture(name="served")
def _served(monkeypatch):
    monkeypatch.setattr(loop, "SWEEP_S", 1000.0)
    served = serve_batches(Oracle(), limits=ClientLimits(most_messages=0.0))
    yield served
    served.close()


def test_a_client_whose_steps_wait_for_an_answer_is_closed_and_no_other(served, monkeypatch):
    hasty, quiet = BinaryClient(served), BinaryClient(served)
    for connection in served.worker._connections.values():
        connection.handled = 0  # their hellos were long ago
    monkeypatch.setattr(loop, "SWEEP_S", 0.0)
    served.worker._sweep_at = 0.0  # the next turn looks at what was sent since then
    hasty.tell([0], [START], [0], [1])
    payload = hasty.receive()
    with pytest.raises(binary.Error, match="messages a second") as refused:
        binary.decode_answers(payload)
    assert refused.value.code == ErrorCode.PROTOCOL
    assert served.load == 1
    served.turn(3)
    assert quiet.connection.begun_now() == b""  # its connection is open
