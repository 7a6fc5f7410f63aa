"""The channel between the RLX server and a shared worker: connections one way, reports back."""

import contextlib
import os
import resource
import select
import socket

import pytest

from relaax.server.rlx_server.handover import Inbox, Outbox, Report, channel


class Ends:
    """The ends of one channel, and the clients whose connections go through it."""

    def __init__(self):
        self.ours, self.theirs = channel()
        self.outbox = Outbox(self.ours)
        self.inbox = None
        self.clients = []

    def start(self):
        """Open the worker's end, as a worker does when it has started."""
        self.inbox = Inbox(self.theirs)

    def hand_over(self, peer="a test"):
        client, served = socket.socketpair()
        self.clients.append(client)
        with served:
            self.outbox.hand_over(served, peer)
        return client

    def take(self):
        """Return the addresses of what has come; say something to each client."""
        taken = self.inbox.take()
        for number, (connection, _) in enumerate(taken):
            with connection:
                connection.sendall(bytes([number % 256]))
        return [peer for _, peer in taken]

    def load_after_report(self, environments):
        self.inbox.report(environments)
        self.outbox.listen()
        return self.outbox.load

    def close(self):
        for end in (self.outbox, self.inbox or self.theirs, *self.clients):
            end.close()


@pytest.fixture(name="ends")
def _ends():
    with contextlib.closing(Ends()) as ends:
        yield ends


def test_connections_arrive_in_their_order_each_with_its_address(ends):
    ends.start()
    first, second = ends.hand_over("10.0.0.1:5"), ends.hand_over("[::1]:6")
    assert ends.take() == ["10.0.0.1:5", "[::1]:6"]
    assert (first.recv(9), second.recv(9)) == (b"\0", b"\1")
    assert ends.take() == []


def test_a_starting_worker_finds_connections_handed_over_before(ends):
    clients = [ends.hand_over(str(number)) for number in range(20)]
    assert not ends.outbox.is_ready
    assert ends.outbox.load == 20
    ends.start()
    assert ends.take() == [str(number) for number in range(20)]
    assert clients[19].recv(9) == bytes([19])


def test_the_first_report_says_that_the_worker_is_ready(ends):
    ends.outbox.listen()
    assert not ends.outbox.is_ready
    ends.start()
    assert ends.load_after_report(0) == 0
    assert ends.outbox.is_ready


def test_the_load_counts_environments_and_connections_on_their_way(ends):
    ends.start()
    ends.hand_over()
    ends.take()
    assert ends.load_after_report(16) == 16
    ends.hand_over()
    ends.hand_over()
    assert ends.outbox.load == 18
    assert ends.load_after_report(16) == 18, "they have not been taken"
    ends.take()
    assert ends.load_after_report(20) == 20
    assert ends.load_after_report(4) == 4


def test_the_same_is_reported_once(ends):
    ends.start()
    for environments in (0, 0, 3, 3, 0):
        ends.inbox.report(environments)
    packets = []
    with contextlib.suppress(BlockingIOError):
        while True:
            packets.append(Report.unpack(ends.ours.recv(256)))
    assert packets == [Report(0, 0), Report(0, 3), Report(0, 0)]


def test_a_report_that_the_channel_does_not_hold_is_made_up_for(ends):
    """The RLX server does not listen for a while: the worker neither waits nor forgets."""
    ends.start()
    for environments in range(10_000):
        ends.inbox.report(environments)
    assert ends.inbox.is_open
    ends.outbox.listen()
    assert ends.outbox.load < 9_999
    assert ends.load_after_report(9_999) == 9_999


def test_a_channel_that_is_full_refuses_a_connection_and_keeps_the_others(ends):
    """A worker that hangs does not hold up the RLX server."""
    with pytest.raises(OSError):  # noqa: PT012, PT011 - which one depends on the system
        while True:
            ends.hand_over()
    count = len(ends.clients) - 1
    assert ends.outbox.load == count
    ends.start()
    taken = 0
    while peers := ends.take():
        taken += len(peers)
    assert taken == count


def test_a_worker_that_ends_is_noticed(ends):
    ends.start()
    ends.inbox.report(3)
    ends.inbox.close()
    assert select.select([ends.outbox], [], [], 0)[0]
    ends.outbox.listen()
    assert ends.outbox.is_lost
    assert ends.outbox.load == 3, "what it had reported before has been taken"
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the system
        ends.hand_over()


def test_connections_that_a_worker_leaves_behind_are_closed(ends):
    client = ends.hand_over()
    ends.theirs.close()
    assert client.recv(1) == b""


def test_an_rlx_server_that_ends_is_noticed_after_its_last_connection(ends):
    ends.start()
    ends.hand_over("the last")
    ends.outbox.close()
    assert ends.inbox.is_open
    assert ends.take() == ["the last"]
    assert not ends.inbox.is_open
    ends.inbox.report(5)
    assert not ends.inbox.is_open


def test_a_report_to_an_rlx_server_that_has_ended_closes_the_inbox(ends):
    ends.start()
    ends.outbox.close()
    ends.inbox.report(1)
    assert not ends.inbox.is_open


def test_a_connection_without_a_free_descriptor_is_lost_and_counted(ends):
    ends.start()
    lost, kept = ends.hand_over("lost"), ends.hand_over("kept")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
    try:
        assert ends.take() == []
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (lost.recv(1), kept.recv(1)) == (b"", b"")
    assert ends.inbox.is_open
    assert ends.load_after_report(0) == 0
    ends.hand_over("next")
    assert ends.take() == ["next"]
