"""A worker for each connection: real forked processes, which run something small."""

import forking_programs
import pytest

pytestmark = pytest.mark.integration

PREAMBLE = """
import itertools, os, select, signal, socket, sys
from relaax.server.rlx_server.admission import WorkerAdmission
from relaax.server.rlx_server.children import Children
from relaax.server.rlx_server.connection_workers import ConnectionWorkers
from relaax.server.rlx_server.tally import Tally

children = Children()

def make(run, first_worker_mib=0.001):
    admission = WorkerAdmission(first_worker_mib)
    of_row = lambda seed, row, connection, peer, token: run(seed, connection, peer)
    return ConnectionWorkers(children, admission, itertools.count(40), Tally(), of_row)

def name_itself(seed, connection, peer):
    connection.sendall(f"{seed} {peer}".encode())
    connection.recv(1)
    return 0

def client(peer="a test"):
    # Has a worker serve a connection, as the RLX server does; returns the client's end.
    ours, theirs = socket.socketpair()
    with theirs:
        client.pid = workers.serve(theirs, peer)
    ours.settimeout(20)
    children.parents_own(ours)
    return ours
"""


def run(program):
    return forking_programs.run(PREAMBLE, program)


def test_each_connection_gets_a_process_a_seed_and_its_clients_address():
    program = """
        workers = make(name_itself)
        workers.start_due()
        assert workers.pids == []
        first, second = client("10.0.0.1:5"), client("[::1]:6")
        assert (first.recv(99), second.recv(99)) == (b"40 10.0.0.1:5", b"41 [::1]:6")
        assert len(set(workers.pids)) == 2
        assert workers.is_open
        children.stop()
    """
    run(program)


def test_a_worker_ends_with_its_connection_and_stops_nothing_else():
    program = """
        workers = make(name_itself)
        first, second = client(), client()
        first.recv(99), second.recv(99)
        second.shutdown(socket.SHUT_RDWR)
        assert children.wait([client.pid])
        class Exited:
            pid, exit_code = client.pid, 0
        assert workers.note_exit(Exited) is None
        assert len(workers.pids) == 1
        class Other:
            pid, exit_code = 1, 2
        assert workers.note_exit(Other) is None
        assert len(workers.pids) == 1
        children.stop()
    """
    run(program)


def test_a_connection_is_closed_with_its_worker():
    program = """
        workers = make(name_itself)
        first = client()
        first.recv(99)
        os.kill(client.pid, signal.SIGKILL)
        assert first.recv(1) == b""
        children.stop()
    """
    run(program)


def test_a_fork_that_fails_is_an_error_of_its_connection():
    program = """
        workers = make(name_itself)
        def refuse(name, function):
            raise BlockingIOError("no more processes")
        children.fork = refuse
        try:
            client()
            sys.exit("no process was forked")
        except OSError:
            assert workers.pids == []
    """
    run(program)


def test_memory_decides_whether_one_more_is_admitted():
    program = """
        workers = make(name_itself, first_worker_mib=1e9)
        assert not workers.admit().is_admitted
        workers = make(name_itself)
        assert workers.admit().is_admitted
    """
    run(program)
