"""Lines about callers that are refused: bounded, whoever calls, and none is forgotten."""

import re

import forking_programs
import pytest
from clock import Clock

from relaax.access.refusal_log import EVERY_S, MOST_ADDRESSES, Kind, RefusalLog

ADDRESS = "192.0.2.1"
WRONG = "its token is wrong"


@pytest.fixture(name="clock")
def _clock():
    return Clock(0.0)


@pytest.fixture(name="log")
def _log(clock):
    return RefusalLog(clock)


@pytest.fixture(name="said")
def _said(caplog):
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_burst_that_stops_is_summed_up(log, clock, said):
    for _ in range(50):
        log.add(Kind.WRONG_TOKEN, "RLX", ADDRESS, WRONG)
    log.say_left_out()
    assert said() == ["refused at the RLX port, from 192.0.2.1: its token is wrong"]
    clock.now += EVERY_S
    log.say_left_out()
    assert said()[1:] == [
        "refused at the RLX port, from 192.0.2.1: its token is wrong"
        " (49 times since the last such message)"
    ]
    clock.now += EVERY_S
    log.say_left_out()
    assert len(said()) == 2


def test_one_that_is_told_of_later_is_no_new_one(log, clock, said):
    for _ in range(2):
        log.add(Kind.WRONG_TOKEN, "RLX", ADDRESS, WRONG)
    clock.now += EVERY_S
    log.say_left_out()
    assert said()[1].endswith("its token is wrong (once since the last such message)")


def test_the_first_of_another_reason_or_port_is_not_hidden(log, said):
    for _ in range(3):
        log.add(Kind.WRONG_TOKEN, "RLX", ADDRESS, WRONG)
        log.add(Kind.WRONG_TOKEN, "gRPC", ADDRESS, WRONG)
        log.add(Kind.NOTHING_SHOWN, "RLX", ADDRESS, "no token")
        log.add(Kind.OVER_LIMIT, "RLX", ADDRESS, "too many")
    assert said() == [
        "refused at the RLX port, from 192.0.2.1: its token is wrong",
        "refused at the gRPC port, from 192.0.2.1: its token is wrong",
        "refused at the RLX port, from 192.0.2.1: no token",
        "refused at the RLX port, from 192.0.2.1: too many",
    ]


def test_of_many_addresses_a_few_have_lines_and_all_others_one_together(log, clock, said):
    for number in range(1000):
        log.add(Kind.WRONG_TOKEN, "RLX", f"192.0.{number // 256}.{number % 256}", WRONG)
    first, others = said()[:MOST_ADDRESSES], said()[MOST_ADDRESSES:]
    assert first == [
        f"refused at the RLX port, from 192.0.0.{number}: its token is wrong"
        for number in range(MOST_ADDRESSES)
    ]
    assert others == [
        "refused once since the last such message, from more addresses than have lines of their "
        f"own; the last one at the RLX port, from 192.0.0.{MOST_ADDRESSES}: its token is wrong"
    ]
    clock.now += EVERY_S
    log.say_left_out()
    assert said()[MOST_ADDRESSES + 1 :] == [
        f"refused {1000 - MOST_ADDRESSES - 1} times since the last such message, from more "
        "addresses than have lines of their own; the last one at the RLX port, from 192.0.3.231: "
        "its token is wrong"
    ]


def test_an_address_over_its_limit_is_named_however_many_show_wrong_tokens(log, said):
    for number in range(1000):
        log.add(Kind.NOTHING_SHOWN, "RLX", f"192.0.{number // 256}.{number % 256}", "no token")
        log.add(Kind.WRONG_TOKEN, "RLX", f"192.0.{number // 256}.{number % 256}", WRONG)
    log.add(Kind.OVER_LIMIT, "RLX", "198.51.100.7", "too many")
    assert said()[-1] == "refused at the RLX port, from 198.51.100.7: too many"


def test_addresses_of_a_network_of_ipv6_have_one_line(log, said):
    for number in range(1000):
        log.add(Kind.WRONG_TOKEN, "RLX", f"[2001:db8::{number:x}]", WRONG)
    assert said() == ["refused at the RLX port, from [2001:db8::0]: its token is wrong"]


def test_a_flood_of_an_hour_is_bounded_and_each_of_it_is_counted(log, clock, said):
    seconds, refused = 3600, 0
    for second in range(seconds):
        for number in range(20):
            log.add(Kind.WRONG_TOKEN, "RLX", f"10.{second // 256}.{second % 256}.{number}", WRONG)
            refused += 1
        clock.now += 1.0
        log.say_left_out()
    log.say_left_out(ends=True)
    assert len(said()) <= (MOST_ADDRESSES + 1) * (seconds / EVERY_S + 2)
    assert sum(_times(line) for line in said()) == refused


def _times(line):
    found = re.search(r"(\d+) times since", line)
    return int(found[1]) if found else 1


def test_a_line_is_as_long_as_there_is_room_for(log, said):
    log.add(Kind.NOTHING_SHOWN, "RLX", ADDRESS, "ä" * 1000)
    log.add(Kind.NOTHING_SHOWN, "RLX", ADDRESS, "ä" * 1000)
    log.say_left_out(ends=True)
    assert len(said()) == 2
    for line in said():
        assert line.startswith("refused at the RLX port, from 192.0.2.1: ää")
        assert len(line) < 600


FORKED = """
import logging, os, signal
from relaax.access.refusal_log import EVERY_S, Kind, RefusalLog

logging.basicConfig(format="%(message)s")
now = 100.0
log = RefusalLog(lambda: now)

def in_child(number):
    child = os.fork()
    if child == 0:
        for address in range(40):
            log.add(Kind.WRONG_TOKEN, "RLX", f"192.0.2.{address}", "wrong")
        os.kill(os.getpid(), signal.SIGKILL)
    return child

for child in [in_child(number) for number in range(8)]:
    os.waitpid(child, 0)
now += EVERY_S
log.say_left_out()
"""


def test_processes_write_a_few_lines_together_and_what_killed_ones_left_out_is_said():
    lines = forking_programs.run(FORKED, "").stderr.splitlines()
    assert len(lines) == 2 * (MOST_ADDRESSES + 1)
    assert sum(_times(line) for line in lines) == 8 * 40
