"""Slots of clients, endpoints, topics and the log file."""

import numpy as np
import pytest
from memoire_entries import columns, memory_of, states

from relaax.compat.memoire.memory import Clients
from relaax.compat.memoire.proxy import target_of
from relaax.compat.memoire.server import LogFile
from relaax.compat.memoire.service import Topics
from relaax.errors import ConfigurationError
from relaax.replay.storage import START, TERMINATED
from relaax.replay.writers import NoFreeSlot, UnknownWriter


def index(clients: Clients, name: str) -> int:
    """The slot that a client gets."""
    clients.open(name)
    return clients.index_of(name)


def test_slots_are_given_in_the_order_of_arrival_and_kept():
    clients = Clients(2, lease_s=60)
    assert [index(clients, name) for name in ("b/1", "a/1", "b/1")] == [0, 1, 0]


def test_a_client_that_comes_again_has_its_slot_again():
    clients = Clients(3, lease_s=60)
    clients.open("a/1")
    clients.open("b/1")
    clients.close("a/1")
    assert index(clients, "c/1") == 2
    assert index(clients, "a/2") == 0


def test_the_newer_of_two_clients_of_one_name_has_the_slot():
    clients = Clients(2, lease_s=60)
    clients.open("a/1")
    before = clients.slot("a/1", 0)
    assert clients.open("a/2") == [before]
    with pytest.raises(UnknownWriter):
        clients.slot("a/1", 0)
    with pytest.raises(ValueError, match="another client with the uuid 'a' has taken its slot"):
        clients.open("a/1")
    assert clients.index_of("a/2") == 0


def test_more_clients_than_slots_are_refused_until_one_is_closed():
    clients = Clients(1, lease_s=60)
    clients.open("a/1")
    with pytest.raises(NoFreeSlot, match="all 1 slots are taken; one becomes free when its client"):
        clients.open("b/1")
    clients.close("a/1")
    assert index(clients, "b/1") == 0


def test_a_client_that_is_silent_for_its_lease_makes_room_for_another():
    clients = Clients(1, lease_s=-1)
    clients.open("a/1")
    assert index(clients, "b/1") == 0
    with pytest.raises(UnknownWriter):
        clients.slot("a/1", 0)


@pytest.mark.parametrize("name", ["", "/1"])
def test_a_client_needs_a_name(name: str):
    with pytest.raises(ValueError, match="a client needs a name"):
        Clients(1, lease_s=60).open(name)


def test_a_client_has_one_environment():
    clients = Clients(1, lease_s=60)
    clients.open("a/1")
    with pytest.raises(ValueError, match="only environment is number 0, not 1"):
        clients.slot("a/1", 1)


def append(memory, name: str, numbers, *flags: int) -> None:
    memory.slot_of(name)
    first = memory.clients.slot(name, 0).next_step
    memory.replay.append(name, 0, first, columns(numbers), np.array(flags, np.uint8))


def test_an_episode_that_begins_cuts_off_the_one_before():
    memory = memory_of(8)
    append(memory, "a/1", [0, 1, 10, 11], START, 0, START, TERMINATED)
    memory.rollout_len, memory.do_padding = 2, True
    assert states(memory) == {(0, 0), (0, 1), (10, 10), (10, 11)}
    assert memory.total_episodes == 2


def test_the_entries_of_a_client_that_was_closed_can_still_be_drawn():
    memory = memory_of(4, n_slot=1)
    append(memory, "a/1", [0, 1, 2], START, 0, 0)
    memory.replay.close_writer("a/1")
    assert memory.total_episodes == 1
    append(memory, "b/1", [10, 11], START, 0)
    assert states(memory) == {(1,), (2,), (10,), (11,)}
    memory.rollout_len = 2
    assert states(memory) == {(1, 2), (10, 11)}


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("tcp://localhost:5560", "localhost:5560"),
        ("tcp://*:5560", "0.0.0.0:5560"),
        ("tcp://[::1]:5560", "[::1]:5560"),
        ("10.0.0.1:5560", "10.0.0.1:5560"),
        ("ipc:///tmp/memoire", "unix:/tmp/memoire"),
    ],
)
def test_endpoints_are_written_as_in_memoire(endpoint: str, target: str):
    assert target_of(endpoint) == target


@pytest.mark.parametrize("endpoint", ["", "tcp://localhost", "udp://a:1", "ipc://", "inproc://a"])
def test_a_wrong_endpoint_is_refused(endpoint: str):
    with pytest.raises(ConfigurationError, match="endpoint is tcp://HOST"):
        target_of(endpoint)


def test_the_newest_message_of_a_topic_is_kept():
    topics = Topics()
    assert topics.newest("model", 0, 0.0) is None
    topics.publish("model", b"old")
    topics.publish("model", b"new")
    topics.publish("other", b"else")
    newest = topics.newest("model", 0, 0.0)
    assert newest is not None
    version, data = newest
    assert data == b"new"
    assert topics.newest("model", version, 0.0) is None


def test_a_line_of_the_log_is_one_message(tmp_path):
    path = tmp_path / "clients.log"
    log = LogFile()
    log.write("a", "without a file there is no line")
    path.write_text("before\n")
    log.open(path, "a")
    log.write("a", "two\nlines\n")
    log.open(tmp_path / "other.log", "w")
    log.write("b", "elsewhere")
    log.close()
    before, line = path.read_text().splitlines()
    assert before == "before"
    assert line.split(",", 1)[1] == r"a,two\nlines"
    assert (tmp_path / "other.log").read_text().endswith(",b,elsewhere\n")


def test_a_log_refuses_what_it_cannot_write(tmp_path):
    log = LogFile()
    with pytest.raises(ConfigurationError, match="'w' or 'a', not 'r'"):
        log.open(tmp_path / "log", "r")
    with pytest.raises(ValueError, match="at most 65536 characters, not 70000"):
        log.write("a", "x" * 70_000)
