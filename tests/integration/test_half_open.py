"""A peer whose machine is gone closes nothing: it is noticed, and one that is only silent stays."""

import signal
import sys
from collections.abc import Iterator

import pytest
from balancer import HAPROXY, NEEDS_HAPROXY, configuration
from networks import NEEDS_NAMESPACES, Machine, Network, network
from processes import Process, Training

pytestmark = [pytest.mark.integration, NEEDS_NAMESPACES]

#: Keep-alive comes sooner than it does for users: a peer is gone after three seconds.
IDLE_S, INTERVAL_S, PROBES = 1, 1, 2
SILENCE_S = 6.0

#: The system gives up when it sends again, which it does less and less often.
NOTICED_S = 20.0

#: Greets its client when it gets SIGUSR1, and says what comes of the connection then.
SERVER = f"""
import signal, socket, sys
from relaax.protocol import FrameConnection, framing
framing.KEEPALIVE_IDLE_S, framing.KEEPALIVE_INTERVAL_S = {IDLE_S}, {INTERVAL_S}
framing.KEEPALIVE_PROBES = {PROBES}
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGUSR1}})
listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("listening", flush=True)
accepted, _ = listener.accept()
connection = FrameConnection(accepted)
assert connection.receive() == b"hello"
print("connected", flush=True)
if sys.argv[2] == "speaks":
    signal.sigwait({{signal.SIGUSR1}})
    connection.send(b"welcome")
try:
    print("came:", connection.receive(), flush=True)
except OSError as error:
    print("lost:", error, flush=True)
"""

CLIENT = """
import socket, sys, time
from relaax.protocol import FrameConnection
deadline = time.monotonic() + 30
while True:
    try:
        connected = socket.create_connection((sys.argv[1], 7001), 10)
        break
    except ConnectionRefusedError:
        assert time.monotonic() < deadline
        time.sleep(0.05)
connection = FrameConnection(connected)
connection.send(b"hello")
time.sleep(float(sys.argv[2]))
connection.send(b"I was thinking")
time.sleep(600)
"""


@pytest.fixture(name="machines")
def _machines(training: Training) -> Iterator[Network]:
    with network(training) as machines:
        yield machines


def start(training: Training, machine: Machine, name: str, program: str, *words: str) -> Process:
    return training.start(name, machine.command(sys.executable, "-c", program, *words))


def start_server(training: Training, machine: Machine, port: int, mode: str) -> Process:
    server = start(training, machine, "server", SERVER, str(port), mode)
    server.says("listening")
    return server


def start_client(training: Training, machine: Machine, server: Machine, silence_s: float) -> None:
    start(training, machine, "client", CLIENT, server.address, str(silence_s))


@pytest.mark.parametrize("mode", ["waits", "speaks"])
def test_a_server_notices_that_its_client_is_gone(
    training: Training, machines: Network, mode: str
) -> None:
    """While it waits for a message, and while it has sent one that is not acknowledged."""
    servers, clients = machines.add(), machines.add()
    server = start_server(training, servers, 7001, mode)
    start_client(training, clients, servers, 600)
    server.says("connected")
    with clients.cut_off():
        server.signal(signal.SIGUSR1)
        server.says("lost: ", NOTICED_S)


def test_a_client_that_thinks_for_longer_than_that_stays(
    training: Training, machines: Network
) -> None:
    servers, clients = machines.add(), machines.add()
    server = start_server(training, servers, 7001, "waits")
    start_client(training, clients, servers, SILENCE_S)
    server.says("came: b'I was thinking'")


@NEEDS_HAPROXY
@pytest.mark.parametrize("mode", ["waits", "speaks"])
def test_haproxy_closes_the_connection_of_a_client_that_is_gone(
    training: Training, machines: Network, mode: str
) -> None:
    servers, clients = machines.add(), machines.add()
    server = start_server(training, servers, 7002, mode)
    text = configuration("0.0.0.0:7001", [("127.0.0.1:7002", "127.0.0.1:7102")])
    for shipped, sooner in (
        ("default-server check", "default-server"), ("option httpchk", "#"),
        ("tcp-ut 120s", "tcp-ut 3s"),
        ("-idle 60s", f"-idle {IDLE_S}s"), ("-intvl 15s", f"-intvl {INTERVAL_S}s"),
        ("-cnt 4", f"-cnt {PROBES}"),
    ):  # fmt: skip
        assert shipped in text
        text = text.replace(shipped, sooner)
    path = training.directory / "haproxy.cfg"
    path.write_text(text)
    training.start("haproxy", servers.command(str(HAPROXY), "-db", "-f", str(path)))
    start_client(training, clients, servers, 600)
    server.says("connected")
    with clients.cut_off():
        server.signal(signal.SIGUSR1)
        server.says("came: None|lost: ", NOTICED_S)
