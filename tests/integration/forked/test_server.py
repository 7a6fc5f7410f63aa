"""The RLX server's loop, with workers that a test makes, in a process of its own."""

import forking_programs
import pytest

from relaax.launcher.live_printer import state_in

pytestmark = pytest.mark.integration

PREAMBLE = """
import logging, os, select, selectors, signal, socket, sys, threading, time
from relaax.address import Address
from relaax.server.rlx_server import server as module
from relaax.server.rlx_server.admission import AdmissionDecision
from relaax.protocol import FrameConnection
from relaax.server.rlx_server.children import Children
from relaax.server.rlx_server.entrance import Guard
from relaax.net.listening import listen_as_told
from relaax.server.rlx_server.limits import ConnectionLimits
from relaax.server.rlx_server.lobby import Lobby
from relaax.server.rlx_server.server import RlxServer
from relaax.server.rlx_server.tally import Cell, Tally
from relaax.server.rlx_server.children import Watchdog
from relaax.server.rlx_server.watcher import TRAINING_IS_OVER

logging.basicConfig(level=logging.INFO, format="%(message)s")
module.POLL_S = 0.02

class Workers:
    # Serves a connection in this process, by saying its number.
    def __init__(self):
        self.is_open = True
        self.has_room = True
        self.take_unproved = True
        self.is_admitted = True
        self.served = 0
        self.exits = []
        self.ends_with = None
        self.pids = []
        self.turns = {}
        self.looks = 0
        self.are_idle = False
        self.drained = 0
        self.most = 100

    @property
    def connections(self):
        return self.served or 0

    def connections_of(self, host):
        assert host == "127.0.0.1"
        return 0

    def start_due(self):
        self.looks += 1

    def drain(self):
        self.drained += 1

    def admit(self):
        return AdmissionDecision(self.is_admitted, 1, 2)

    def serve(self, connection, peer, token_digest=None):
        assert peer == "%s:%d" % connection.getpeername()
        if self.served is None:
            raise OSError("all have died")
        self.served += 1
        connection.setblocking(True)
        connection.sendall(b"%d" % self.served)
        return 1

    def note_exit(self, exited):
        self.exits.append(exited.exit_code)
        return self.ends_with

workers, children = Workers(), Children()
listener = listen_as_told(Address("127.0.0.1", 0), "--bind")
state = Tally().state
address = listener.getsockname()

def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.01)

def take_turns():
    # What has been changed before is seen in these turns of the server's loop.
    before = workers.looks
    wait_for(lambda: workers.looks > before + 2)

def connect():
    client = socket.create_connection(address)
    client.settimeout(20)
    return client

def serve(clients, watch=lambda: time.sleep(60) or 0, drain_s=0, worker_timeout_s=60):
    # Runs the server here, and what its clients do on a thread, which stops it at last.
    failed = []
    def run_clients():
        try:
            clients()
        except BaseException as error:
            failed.append(error)
        os.kill(os.getpid(), signal.SIGTERM)
    thread = threading.Thread(target=run_clients)
    watchdog = Watchdog(state, worker_timeout_s)
    selector = selectors.DefaultSelector()
    limits = ConnectionLimits(workers.most, workers.most)
    lobby = Lobby(Guard(tokens=None, hello_timeout_s=1.0), FrameConnection)
    server = RlxServer(
        listener, selector, children, workers, watch, state, watchdog, drain_s, limits,
        lobby,
    )
    thread.start()
    status = server.run()
    thread.join()
    if failed:
        raise failed[0]
    assert children.pids == []
    return status
"""


def run(program):
    return forking_programs.run(PREAMBLE, program).stderr


def test_connections_are_given_to_workers_and_closed_here():
    program = """
        def clients():
            for number in (b"1", b"2"):
                with connect() as client:
                    assert client.recv(9) == number
                    assert client.recv(9) == b""
        assert serve(clients) == 0
    """
    said = run(program)
    assert "serving at 127.0.0.1:" in said
    assert "worker 1 serves 127.0.0.1:" in said
    assert "stopping: SIGTERM" in said


def test_a_connection_without_memory_is_closed_with_the_figures_in_the_log():
    program = """
        def clients():
            workers.is_admitted = False
            with connect() as client:
                assert client.recv(9) == b""
            workers.is_admitted = True
            with connect() as client:
                assert client.recv(9) == b"1"
        serve(clients)
    """
    assert "0 MiB of memory are available and a connection needs 1.9e-06 MiB" in run(program)


def test_a_connection_that_no_worker_takes_is_closed():
    program = """
        def clients():
            workers.served = None
            with connect() as client:
                assert client.recv(9) == b""
        serve(clients)
    """
    assert "no worker serves it: all have died" in run(program)


def test_clients_wait_while_no_worker_can_take_connections():
    program = """
        def clients():
            workers.is_open = False
            take_turns()
            with connect() as client:
                take_turns()
                assert not select.select([client], [], [], 0)[0]
                workers.is_open = True
                assert client.recv(9) == b"1"
        serve(clients)
    """
    run(program)


def test_clients_wait_while_workers_have_no_room_and_the_server_says_that_it_listens():
    program = """
        def clients():
            workers.has_room = False
            take_turns()
            with connect() as client:
                take_turns()
                assert not select.select([client], [], [], 0)[0]
                assert state[Cell.LISTENS]
                workers.has_room = True
                assert client.recv(9) == b"1"
        serve(clients)
    """
    run(program)


def test_the_exit_status_of_a_worker_may_be_the_servers():
    program = """
        def clients():
            wait_for(lambda: children.pids)
            workers.ends_with = 2
            children.send_signal(children.pids, signal.SIGKILL)
            wait_for(lambda: workers.exits)
        assert serve(clients) == 2
        assert workers.exits == [-signal.SIGKILL]
    """
    assert "was killed by SIGKILL" in run(program)


def test_the_end_of_the_training_ends_the_server():
    program = """
        def clients():
            wait_for(lambda: workers.exits)
        assert serve(clients, watch=lambda: TRAINING_IS_OVER) == 0
        assert workers.exits[0] == TRAINING_IS_OVER
    """
    assert "the training is over" in run(program)


def test_a_watcher_that_fails_is_started_again_after_a_pause():
    program = """
        module.WATCHER_RESTART_S = 0.05
        def clients():
            wait_for(lambda: len(workers.exits) == 3)
        assert serve(clients, watch=lambda: 3) == 0
        assert set(workers.exits) == {3}
    """
    assert "watcher of the parameter server" in run(program)


def test_relaax_train_gets_a_live_line_of_the_server():
    program = """
        def clients():
            connect().recv(1)
            workers.is_admitted = False
            assert connect().recv(1) == b""
            workers.pids = [1, 2]
            take_turns()
        os.environ["RELAAX_LIVE_LINES"] = "0.001"
        assert serve(clients, watch=lambda: 3) == 0
    """
    lines = forking_programs.run(PREAMBLE, program).stdout.splitlines()
    shown = {str(state_in(line)) for line in lines}
    assert (
        "RLX server: workers 2 | connections accepted 1 | connections refused 1 | workers lost 0"
    ) in shown


def test_with_sigterm_no_more_connections_are_taken_and_all_may_end_before_the_server_does():
    program = """
        def clients():
            with connect() as client:
                assert client.recv(9) == b"1"
                os.kill(os.getpid(), signal.SIGTERM)
                wait_for(lambda: workers.drained)
                wait_for(lambda: refused())
                assert state[Cell.DRAINS] and not state[Cell.LISTENS]
                take_looks_of_a_draining_server()
                workers.are_idle = True

        def take_looks_of_a_draining_server():
            time.sleep(5 * module.POLL_S)  # it would have ended
            assert not stopped

        def refused():
            try:
                connect().close()
            except ConnectionRefusedError:
                return True

        stopped = []
        assert serve(clients, drain_s=60) == 0
        stopped.append(True)
        assert workers.drained == 1
    """
    assert "SIGTERM: letting connections go" in run(program)


@pytest.mark.parametrize("why", ["deadline", "signal", "away"])
def test_a_server_does_not_wait_for_ever_for_its_connections_to_end(why):
    program = f"""
        def clients():
            assert connect().recv(1) == b"1"
            if {why!r} == "deadline":
                return
            os.kill(os.getpid(), signal.SIGTERM)
            wait_for(lambda: workers.drained)
            if {why!r} == "away":
                state.note_now(Cell.PARAMETER_SERVER_WAS_AWAY)
                wait_for(lambda: listener.fileno() == -1 and not children.pids)
        assert serve(clients, drain_s=0.2 if {why!r} == "deadline" else 60) == 0
    """
    said = run(program)
    assert ("did not leave within 0.2 s" in said) == (why == "deadline")


def test_the_server_has_looked_around_before_operators_may_ask():
    program = """
        def watch():
            # Exactly as the watcher, which answers them, finds it.
            has_looked = state[Cell.LOOKED_AROUND] > 0 and state[Cell.AVAILABLE] > 0
            os._exit(7 if has_looked else 9)
        def clients():
            wait_for(lambda: workers.exits)
        serve(clients, watch=watch)
    """
    assert "ended with status 7" in run(program)


def test_a_worker_that_hangs_is_killed_and_counted():
    program = """
        def clients():
            began = time.monotonic()
            pid = children.fork("worker", lambda: time.sleep(60) or 0)
            workers.turns = {pid: began}
            wait_for(lambda: workers.exits)
            assert workers.exits == [-signal.SIGKILL]
            assert state[Cell.WORKERS_HUNG] == state[Cell.WORKERS_LOST] == 1
        module.LOOK_AROUND_S = 0.01
        assert serve(clients, worker_timeout_s=0.3) == 0
    """
    assert "has hung for more than 0.3 s: killed" in run(program)


def test_an_address_in_use_is_an_error():
    program = """
        from relaax.errors import ConfigurationError
        try:
            listen_as_told(Address(*address), "--bind")
            sys.exit("two listen at one address")
        except ConfigurationError as error:
            assert str(error).startswith("--bind: cannot listen at 127.0.0.1:"), error
    """
    run(program)


def test_a_connection_beyond_the_limit_is_closed_and_counted():
    program = """
    workers.most = 2
    def clients():
        served = [connect() for _ in range(2)]
        assert [client.recv(9) for client in served] == [b"1", b"2"]
        with connect() as refused:
            assert refused.recv(9) == b""
        assert state[Cell.REFUSED_FOR_LIMIT] == 1
    serve(clients)
    """
    assert "2 connections are served (--max-connections)" in run(program)
