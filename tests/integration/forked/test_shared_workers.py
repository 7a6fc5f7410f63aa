"""Workers that share all connections: real forked processes, which run something small."""

import forking_programs
import pytest

pytestmark = pytest.mark.integration

PREAMBLE = """
import itertools, os, selectors, signal, socket, sys, time
from relaax.server.rlx_server import shared_workers as module
from relaax.server.rlx_server.admission import ShareAdmission
from relaax.server.rlx_server.children import Children
from relaax.server.rlx_server.shared_workers import SharedWorkers
from relaax.server.rlx_server.tally import Tally
from relaax.server.rlx_server.handover import Inbox

class Clock:
    # What the pause before a worker is started again is measured with.
    now = 100.0
    @classmethod
    def monotonic(cls):
        return cls.now

module.time = Clock
selector, children = selectors.DefaultSelector(), Children()
children.parents_own(selector)
admission = ShareAdmission(0.001)

def make(count, run):
    of_row = lambda seed, row, channel: run(seed, channel)
    tally = Tally()
    return SharedWorkers(count, children, admission, selector, itertools.count(40), tally, of_row)

def wait_for(condition):
    # Turns as the RLX server takes them.
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        for key, _ in selector.select(0.01):
            key.data()
        for exited in children.reap():
            statuses.append(workers.note_exit(exited))
        workers.start_due()

statuses = []

def name_itself(seed, channel):
    # Sends its seed to each client, and counts each as ten environments.
    inbox, kept = Inbox(channel), []
    inbox.report(0)
    while inbox.is_open:
        import select
        select.select([inbox], [], [])
        for connection, peer in inbox.take():
            connection.sendall(f"{seed} {peer}".encode())
            kept.append(connection)
        inbox.report(10 * len(kept))
    return 0

clients = []

def client(peer="a test"):
    # Has a worker serve a connection; returns the client's end.
    ours, theirs = socket.socketpair()
    with theirs:
        client.pid = workers.serve(theirs, peer)
    ours.settimeout(20)
    clients.append(ours)
    return ours
"""


def run(program):
    return forking_programs.run(PREAMBLE, program)


def test_connections_are_taken_as_soon_as_all_workers_have_been_ready():
    program = """
        reader, writer = os.pipe()
        def wait_to_be_ready(seed, channel):
            if seed == 41:
                os.read(reader, 1)
            return name_itself(seed, channel)
        workers = make(2, wait_to_be_ready)
        assert not workers.is_open
        workers.start_due()
        wait_for(lambda: sum(worker.is_ready for worker in workers._workers) == 1)
        assert not workers.is_open
        os.write(writer, b".")
        wait_for(lambda: workers.is_open)
        assert len(workers.pids) == 2
        children.stop()
    """
    run(program)


def test_each_worker_has_a_seed_of_its_own_and_gets_the_clients_address():
    program = """
        workers = make(2, name_itself)
        wait_for(lambda: workers.is_open)
        said = {client("10.0.0.1:5").recv(99) for _ in range(2)}
        assert said == {b"40 10.0.0.1:5", b"41 10.0.0.1:5"}, said
        children.stop()
    """
    run(program)


def test_the_least_loaded_worker_gets_the_next_connection():
    program = """
        def weigh(seed, channel):
            # The first counts a connection as three environments, the second as two.
            inbox, taken = Inbox(channel), 0
            inbox.report(0)
            while inbox.is_open:
                import select
                select.select([inbox], [], [])
                taken += len(inbox.take())
                inbox.report(taken * (3 if seed == 40 else 2))
            return 0
        workers = make(2, weigh)
        wait_for(lambda: workers.is_open)
        first, second = workers.pids
        chosen = []
        for expected in ([3, 0], [3, 2], [3, 4], [6, 4], [6, 6]):
            client()
            chosen.append(client.pid)
            wait_for(lambda: [worker.load for worker in workers._workers] == expected)
        assert chosen == [first, second, second, first, second], (chosen, first, second)
        children.stop()
    """
    run(program)


def test_connections_that_come_in_a_burst_are_spread_before_any_report():
    program = """
        workers = make(3, name_itself)
        wait_for(lambda: workers.is_open)
        pids = []
        for _ in range(9):
            client()
            pids.append(client.pid)
        assert sorted(pids) == sorted(workers.pids * 3), pids
        children.stop()
    """
    run(program)


def test_a_burst_waits_while_workers_take_none_and_none_of_it_is_refused():
    program = """
        from relaax.server.rlx_server.handover import MOST_ON_THE_WAY
        reader, writer = os.pipe()
        def wait_first(seed, channel):
            Inbox(channel).report(0)
            os.read(reader, 1)
            return name_itself(seed, channel)
        workers = make(2, wait_first)
        wait_for(lambda: workers.is_open)
        burst = []
        while workers.has_room:
            burst.append(client())
        assert len(burst) == 2 * MOST_ON_THE_WAY, len(burst)
        os.write(writer, b"..")
        wait_for(lambda: workers.has_room)
        burst.append(client())
        said = [each.recv(99) for each in burst]
        assert set(said) == {b"40 a test", b"41 a test"}, said
        children.stop()
    """
    run(program)


def test_a_worker_that_dies_is_replaced_after_a_pause_and_gets_its_share():
    program = """
        workers = make(2, name_itself)
        wait_for(lambda: workers.is_open)
        died, good = workers.pids
        for _ in range(4):
            client()
        wait_for(lambda: sum(worker.load for worker in workers._workers) == 40)
        os.kill(died, signal.SIGKILL)
        wait_for(lambda: workers.pids == [good])
        assert statuses == [None]
        assert workers.is_open, "the other one takes connections"
        client()
        assert client.pid == good
        Clock.now += module.RESTART_S
        workers.start_due()
        # While it starts, it has no environment: it is the least loaded.
        back = client("back again")
        assert client.pid in workers.pids
        assert client.pid not in (died, good)
        assert back.recv(99) == b"42 back again"
        assert len(children._parents_own) == 3, "the selector, and a channel for each worker"
        children.stop()
    """
    run(program)


def test_the_clients_of_a_worker_that_dies_are_closed():
    program = """
        workers = make(2, name_itself)
        wait_for(lambda: workers.is_open)
        first, other = client(), client()
        first.recv(99), other.recv(99)
        os.kill(workers.pids[0], signal.SIGKILL)
        assert first.recv(1) == b""
        other.settimeout(0.01)
        try:
            other.recv(1)
            sys.exit("the other worker's client has been closed")
        except TimeoutError:
            children.stop()
    """
    run(program)


def test_a_worker_is_not_started_again_before_the_pause_is_over():
    program = """
        workers = make(1, lambda seed, channel: 1)
        workers.start_due()
        wait_for(lambda: statuses)
        Clock.now += module.RESTART_S - 0.1
        workers.start_due()
        assert workers.pids == []
        Clock.now += 0.1
        workers.start_due()
        assert len(workers.pids) == 1
        children.stop()
    """
    run(program)


def test_exit_status_2_stops_all_and_no_other_does():
    program = """
        reader, writer = os.pipe()
        def end(seed, channel):
            return os.read(reader, 1)[0]
        workers = make(1, end)
        for status, expected in ((0, None), (1, None), (5, None), (2, 2)):
            Clock.now += module.RESTART_S
            workers.start_due()
            os.write(writer, bytes([status]))
            wait_for(lambda: not workers.pids)
            assert statuses.pop() == expected
        children.stop()
    """
    run(program)


def test_without_a_worker_no_connection_is_taken():
    program = """
        workers = make(2, name_itself)
        wait_for(lambda: workers.is_open)
        for pid in workers.pids:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not workers.pids)
        assert not workers.is_open
        try:
            client()
            sys.exit("no worker runs")
        except OSError as error:
            assert "no worker runs" in str(error)
        Clock.now += module.RESTART_S
        wait_for(lambda: workers.is_open)
        children.stop()
    """
    run(program)


def test_a_worker_that_hangs_is_passed_over_when_it_has_many_on_their_way():
    program = """
        from dataclasses import replace
        def hang(seed, channel):
            if seed == 41:
                return name_itself(seed, channel)
            Inbox(channel).report(0)
            time.sleep(60)
        workers = make(2, hang)
        wait_for(lambda: workers.is_open)
        hanging, good = workers.pids
        pids = []
        while pids.count(good) < 3 or pids[-3:] != [good] * 3:
            assert len(clients) < 5000
            client()
            pids.append(client.pid)
            outbox = workers._workers[1].outbox
            outbox.listen()
            # So that the other one is the least loaded.
            outbox._report = replace(outbox._report, environments=10_000)
        assert hanging in pids
        children.end(workers.pids, signal.SIGKILL)
        children.stop()
    """
    run(program)


def test_a_worker_ends_with_its_channel():
    program = """
        workers = make(1, name_itself)
        wait_for(lambda: workers.is_open)
        (pid,) = workers.pids
        workers._workers[0].outbox._channel.shutdown(socket.SHUT_RDWR)
        wait_for(lambda: not workers.pids)
        Clock.now += module.RESTART_S
        wait_for(lambda: workers.is_open)
        children.stop()
    """
    run(program)


def test_workers_do_not_hold_each_others_channels():
    """Otherwise a worker would not notice that the RLX server has been killed."""
    program = """
        reader, writer = os.pipe()
        def count_sockets(seed, channel):
            fds = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
            links = [os.readlink(fd) for fd in fds if os.path.islink(fd)]
            os.write(writer, bytes([sum(link.startswith("socket") for link in links)]))
            return name_itself(seed, channel)
        workers = make(3, count_sockets)
        wait_for(lambda: workers.is_open)
        assert os.read(reader, 9) == bytes([1, 1, 1]), "each has its own end and no other"
        children.stop()
    """
    run(program)


def test_admission_knows_what_each_worker_serves():
    program = """
        workers = make(2, name_itself)
        wait_for(lambda: workers.is_open)
        seen = []
        admission.decide = lambda sharing: seen.append(list(sharing))
        workers.admit()
        client()
        workers.admit()
        first, second = workers.pids
        pairs = [[(s.pid, s.environments) for s in sharing] for sharing in seen]
        assert pairs == [[(first, 0), (second, 0)], [(first, 1), (second, 0)]], pairs
        children.stop()
    """
    run(program)


def test_a_worker_that_fails_at_every_start_gets_no_connection_beside_one_that_serves():
    program = """
        def fail_after_the_first_two(seed, channel):
            return name_itself(seed, channel) if seed < 42 else 1
        workers = make(2, fail_after_the_first_two)
        wait_for(lambda: workers.is_open)
        died, good = workers.pids
        os.kill(died, signal.SIGKILL)
        wait_for(lambda: workers.pids == [good])
        for _ in range(2):
            Clock.now += module.RESTART_S
            workers.start_due()
            wait_for(lambda: workers.pids == [good])
        Clock.now += module.RESTART_S
        workers.start_due()
        assert len(workers.pids) == 2, "it is tried again"
        for _ in range(3):
            client()
            assert client.pid == good
        children.stop()
    """
    run(program)


def test_a_worker_that_is_late_is_passed_over_until_it_is_ready():
    program = """
        reader, writer = os.pipe()
        def wait_at_the_second_start(seed, channel):
            if seed >= 42:
                os.read(reader, 1)
            return name_itself(seed, channel)
        workers = make(2, wait_at_the_second_start)
        wait_for(lambda: workers.is_open)
        died, good = workers.pids
        os.kill(died, signal.SIGKILL)
        wait_for(lambda: workers.pids == [good])
        Clock.now += module.RESTART_S
        workers.start_due()
        (late,) = set(workers.pids) - {good}
        Clock.now += module.START_S + 1
        client()
        assert client.pid == good
        os.write(writer, b".")
        wait_for(lambda: all(worker.is_ready for worker in workers._workers))
        client()
        assert client.pid == late
        children.stop()
    """
    run(program)


def test_a_worker_that_closes_its_channel_and_does_not_exit_is_killed():
    program = """
        def hang(seed, channel):
            inbox = Inbox(channel)
            inbox.report(0)
            inbox.close()
            signal.pause()
        workers = make(1, hang)
        workers.start_due()
        wait_for(lambda: workers._workers[0].outbox is None)
        Clock.now += module.EXIT_S - 0.1
        workers.start_due()
        assert len(workers.pids) == 1
        Clock.now += 0.2
        wait_for(lambda: statuses)
        children.stop()
    """
    run(program)


def test_an_algorithm_that_fails_before_any_worker_has_served_is_not_started_again():
    program = """
        workers = make(2, lambda seed, channel: module.ALGORITHM_HAS_FAILED)
        workers.start_due()
        wait_for(lambda: statuses)
        assert statuses[0] == 1, statuses
        children.stop()
    """
    run(program)


def test_an_algorithm_that_fails_while_it_serves_is_started_again():
    program = """
        def fail_when_asked(seed, channel):
            inbox = Inbox(channel)
            inbox.report(0)
            if seed == 40:
                import select
                select.select([inbox], [], [])
                return module.ALGORITHM_HAS_FAILED
            return name_itself(seed, channel)
        workers = make(1, fail_when_asked)
        wait_for(lambda: workers.is_open)
        client()
        Clock.now += 10
        wait_for(lambda: statuses and workers.is_open and workers._workers[0].is_ready)
        assert statuses == [None], statuses
        children.stop()
    """
    run(program)
