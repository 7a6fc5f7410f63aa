"""Attempts that fail: counted by their port, and logged with their address and the reason."""

from relaax.net.access import Refusals


def test_each_refusal_is_counted_at_its_port_and_logged_with_its_reason(caplog):
    refusals = Refusals()
    for port in ("gRPC", "HTTP", "HTTP"):
        refusals.add(port, "192.0.2.1", "no token")
    assert refusals.totals() == {"gRPC": 1, "HTTP": 2}
    assert caplog.messages[0] == "refused at the gRPC port, from 192.0.2.1: no token"
