"""Slots of clients, endpoints, topics and the log file."""

import numpy as np
import pytest
from memoire_entries import ENTRY, columns, states

from relaax.compat.memoire import ReplayMemory
from relaax.compat.memoire.ports import target_of
from relaax.compat.memoire.served_memory import ClientSlots, ServedMemory
from relaax.compat.memoire.server import LogFile
from relaax.compat.memoire.topics import Topics
from relaax.errors import ConfigurationError
from relaax.replay.storage import FINAL, START, TERMINATED
from relaax.replay.writers import MissingSteps, NoFreeSlot, UnknownWriter


def flags(*values: int):
    return np.array(values, np.uint8)


def served(n_slot: int = 2, lease_s: float = 60.0) -> tuple[ServedMemory, ReplayMemory]:
    memory = ReplayMemory(ENTRY, 8, n_slot)
    return ServedMemory(memory, lease_s), memory


def test_slots_are_given_in_the_order_of_arrival_and_kept():
    slots = ClientSlots(2, lease_s=60)
    assert slots.open("b/1") == (0, True)
    assert slots.open("a/1") == (1, True)
    assert slots.open("b/1") == (0, False)


def test_a_client_that_comes_again_has_its_slot_again():
    slots = ClientSlots(3, lease_s=60)
    slots.open("a/1")
    slots.open("b/1")
    slots.close("a/1")
    assert slots.open("c/1") == (2, True)
    assert slots.open("a/2") == (0, True)


def test_the_newer_of_two_clients_of_one_name_has_the_slot():
    slots = ClientSlots(2, lease_s=60)
    slots.open("a/1")
    assert slots.open("a/2") == (0, True)
    with pytest.raises(UnknownWriter):
        slots.find("a/1")
    with pytest.raises(ValueError, match="another client with the uuid 'a' has taken its slot"):
        slots.open("a/1")
    assert slots.find("a/2")[0] == 0


def test_more_clients_than_slots_are_refused_until_one_is_closed():
    slots = ClientSlots(1, lease_s=60)
    slots.open("a/1")
    with pytest.raises(NoFreeSlot, match="all 1 slots are taken; one becomes free when its client"):
        slots.open("b/1")
    slots.close("a/1")
    assert slots.open("b/1") == (0, True)


def test_a_client_that_is_silent_for_its_lease_makes_room_for_another():
    slots = ClientSlots(1, lease_s=-1)
    slots.open("a/1")
    assert slots.open("b/1") == (0, True)
    with pytest.raises(UnknownWriter):
        slots.find("a/1")


def test_entries_that_come_twice_are_stored_once_and_none_is_left_out():
    server, memory = served()
    server.open_writer("a/1", server.schema)
    assert server.append("a/1", 0, 0, columns([0, 1]), flags(START, 0)) == 2
    assert server.append("a/1", 0, 1, columns([1, 2]), flags(0, 0)) == 3
    assert server.append("a/1", 0, 0, columns([0, 1]), flags(START, 0)) == 3
    with pytest.raises(MissingSteps, match="entry 3 must come next, not 4"):
        server.append("a/1", 0, 4, columns([4]), flags(0))
    assert states(memory) == {(0,), (1,), (2,)}
    assert server.stats()["steps twice"] == 3


def test_an_episode_that_begins_cuts_off_the_one_before():
    server, memory = served()
    server.open_writer("a/1", server.schema)
    server.append("a/1", 0, 0, columns([0, 1, 10, 11]), flags(START, 0, START, TERMINATED))
    memory.rollout_len, memory.do_padding = 2, True
    assert states(memory) == {(0, 0), (0, 1), (10, 10), (10, 11)}
    assert memory.total_episodes == 2


def test_the_entries_of_a_client_that_was_closed_can_still_be_drawn():
    server, memory = served(n_slot=1)
    server.open_writer("a/1", server.schema)
    server.append("a/1", 0, 0, columns([0, 1]), flags(START, 0))
    server.close_writer("a/1")
    server.open_writer("b/1", server.schema)
    server.append("b/1", 0, 0, columns([10]), flags(START))
    assert states(memory) == {(0,), (1,), (10,)}


def test_what_is_no_entry_is_refused():
    server, _ = served()
    server.open_writer("a/1", server.schema)
    with pytest.raises(ValueError, match="only environment is number 0, not 1"):
        server.append("a/1", 1, 0, columns([0]), flags(START))
    with pytest.raises(ValueError, match="an entry is an action"):
        server.append("a/1", 0, 0, columns([0]), flags(START | FINAL))
    with pytest.raises(ValueError, match="a client needs a name"):
        server.slot_of("/1")
    with pytest.raises(ValueError, match="finds the weights of its entries itself"):
        server.update_priorities("memory", flags(0), flags(0))


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
    with pytest.raises(ConfigurationError, match=r"endpoint is tcp://HOST|from another process"):
        target_of(endpoint)


def test_the_newest_message_of_a_topic_is_kept():
    topics = Topics()
    assert topics.newest("model", 0, 0.0) is None
    topics.publish("model", b"old")
    topics.publish("model", b"new")
    topics.publish("other", b"else")
    message = topics.newest("model", 0, 0.0)
    assert message is not None
    assert message.data == b"new"
    assert topics.newest("model", message.version, 0.0) is None


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
