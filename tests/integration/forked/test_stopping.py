"""How shared workers are stopped, in forked processes as the RLX server makes them."""

from pathlib import Path

import forking_programs
import pytest

pytestmark = pytest.mark.integration

PREAMBLE = """
import itertools, logging, os, select, selectors, signal, socket, sys, time
from contextlib import closing
from types import SimpleNamespace
sys.path.insert(0, SERVED_WORKER)
from served_worker import Oracle, Stub, encoded, settings
from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import Hello
from relaax.server.rlx_server.children import END_OF_TRAINING, STOP, Children
from relaax.server.rlx_server.handover import Outbox, channel
from relaax.server.rlx_server.tally import private_row
from relaax.server.rlx_server.worker import stopping
from relaax.server.rlx_server.worker.process import run_shared_worker
from relaax.server.rlx_server.worker.stopping import StopRequest

class Algorithm:
    knows_batches = True

    def has_learner(self, config):
        return False
    def BridgeControl(self):
        return SimpleNamespace(parameter_server_stub=lambda address: Stub())
    def make_batch_agent(self, config, stub, seed, learns_in_background):
        assert learns_in_background
        self.oracle = Oracle()
        return self.oracle

algorithm = Algorithm()
children = Children()
ours, theirs = channel()
outbox = Outbox(ours)
children.parents_own(outbox)

def start(run=lambda: run_shared_worker(settings(algorithm=algorithm), 5, private_row(), theirs)):
    pid = children.fork("worker", run)
    theirs.close()
    return pid

def connect():
    mine, its = socket.socketpair()
    with its:
        outbox.hand_over(its, "a test")
    client = FrameConnection(mine)
    client.send(binary.encode_hello(Hello("", "")))
    binary.decode_welcome(client.receive(20))
    return client

def status_of(pid):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for ended in children.reap():
            assert ended.pid == pid
            return ended.exit_code
        time.sleep(0.01)

def reason(client):
    try:
        binary.raise_if_error(client.receive(20))
    except binary.Error as error:
        assert client.receive(20) is None
        return error.code, error.text
"""


def run(program):
    folder = str(Path(__file__).parents[2])
    return forking_programs.run(f"SERVED_WORKER = {folder!r}\n{PREAMBLE}", program)


def test_a_worker_serves_until_it_is_stopped_and_says_why():
    program = """
        pid = start()
        first, second = connect(), connect()
        first.send(encoded([0], [1], [0], [4]))
        assert binary.decode_answers(first.receive(20)).actions.tolist() == [[0, 4]]
        os.kill(pid, STOP)
        for client in (first, second):
            assert reason(client) == (binary.ErrorCode.GO_ELSEWHERE, "it stops")
        assert status_of(pid) == 0
    """
    run(program)


def test_the_end_of_the_training_is_what_its_clients_are_told():
    program = """
        pid = start()
        client = connect()
        os.kill(pid, END_OF_TRAINING)
        expected = (binary.ErrorCode.TRAINING_IS_OVER, "the training is over")
        assert reason(client) == expected
        assert status_of(pid) == 0
    """
    run(program)


def test_the_first_of_two_reasons_holds():
    program = """
        with closing(StopRequest()) as stop:
            assert stop.reason is None
            assert not select.select([stop], [], [], 0)[0]
            os.kill(os.getpid(), END_OF_TRAINING)
            os.kill(os.getpid(), STOP)
            assert select.select([stop], [], [], 0)[0]
            assert stop.reason.text == "the training is over"
    """
    run(program)


def test_the_signals_are_given_back():
    program = """
        def mine(number, frame):
            pass
        signal.signal(STOP, mine)
        with closing(StopRequest()):
            assert signal.getsignal(STOP) is not mine
        assert signal.getsignal(STOP) is mine
        assert signal.set_wakeup_fd(-1) == -1
    """
    run(program)


def test_a_worker_that_waits_for_something_that_does_not_come_ends_all_the_same():
    program = """
        stopping.STOP_DEADLINE_S = 0.1
        def wait():
            with closing(StopRequest()):
                os.write(writer, b".")
                while True:
                    time.sleep(60)
        reader, writer = os.pipe()
        pid = start(wait)
        os.read(reader, 1)
        os.kill(pid, STOP)
        assert status_of(pid) == 0
    """
    run(program)


def test_a_worker_ends_when_the_rlx_server_is_gone():
    program = """
        pid = start()
        client = connect()
        outbox.close()
        assert client.receive(20) is None
        assert status_of(pid) == 0
    """
    run(program)


def test_the_network_is_ready_before_the_worker_says_that_it_is():
    program = """
        def make_slowly(config, stub, seed, learns_in_background):
            os.read(reader, 1)
            oracle = Oracle()
            oracle.warm_up = lambda environments: os.write(2, b"warm for %d" % environments)
            return oracle
        algorithm.make_batch_agent = make_slowly
        reader, writer = os.pipe()
        pid = start()
        assert not select.select([outbox], [], [], 0.1)[0]
        os.write(writer, b".")
        assert select.select([outbox], [], [], 20)[0]
        outbox.listen()
        assert outbox.is_ready
        children.stop()
    """
    assert "warm for 128" in run(program).stderr


def test_a_configuration_that_no_worker_can_use_is_status_2():
    program = """
        from relaax.errors import ConfigurationError
        def refuse(*arguments):
            raise ConfigurationError("no such network")
        algorithm.make_batch_agent = refuse
        assert status_of(start()) == 2
    """
    assert "the worker ends: no such network" in run(program).stderr


def test_a_parameter_server_that_refuses_is_status_3_and_all_clients_get_the_reason():
    program = """
        from relaax.errors import BridgeError
        def refuse(oracle, transitions, states, finals):
            raise BridgeError("another network is trained there")
        Oracle.act = refuse
        pid = start()
        first, second = connect(), connect()
        first.send(encoded([0], [1], [0], [4]))
        expected = (binary.ErrorCode.ALGORITHM, "another network is trained there")
        for client in (first, second):
            assert reason(client) == expected
        assert status_of(pid) == 3
    """
    run(program)


def test_a_worker_that_waits_to_be_ready_stops_at_once():
    program = """
        stopping.WORKER_STOP_DEADLINE_S = 60.0
        def wait(config, stub, seed, learns_in_background):
            os.write(writer, b".")
            while True:
                time.sleep(60)
        algorithm.make_batch_agent = wait
        reader, writer = os.pipe()
        pid = start()
        os.read(reader, 1)
        os.kill(pid, STOP)
        assert status_of(pid) == 0
    """
    run(program)
