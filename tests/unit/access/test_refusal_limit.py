"""How many wrong tokens an address may show: budgets that refill, shared by processes."""

import os
import signal
import threading

import pytest
from clock import Clock

from relaax.access.refusal_limit import SLOTS, WINDOW_S, Outcome, RefusalLimit, network_of

ADDRESS = "192.0.2.1"


@pytest.fixture(name="clock")
def _clock():
    return Clock(1_000_000.1)


def wrong():
    return False


def right():
    return True


def never():
    raise AssertionError("the token was looked at")


@pytest.mark.parametrize("most", [1, 3, 7, 20, 1000])
def test_the_budget_of_an_address_is_what_was_said(clock, most):
    limit = RefusalLimit(most, clock)
    assert [limit.attempt(ADDRESS, wrong) for _ in range(most)] == [Outcome.WRONG] * most
    assert limit.attempt(ADDRESS, never) is Outcome.OVER_LIMIT
    assert limit.attempt("192.0.2.2", wrong) is Outcome.WRONG


def test_right_tokens_cost_nothing_and_are_not_looked_at_over_the_limit(clock):
    limit = RefusalLimit(3, clock)
    for _ in range(100):
        assert limit.attempt(ADDRESS, right) is Outcome.RIGHT
    for _ in range(3):
        limit.attempt(ADDRESS, wrong)
    assert limit.attempt(ADDRESS, never) is Outcome.OVER_LIMIT


def test_a_budget_refills_evenly_and_what_is_refused_meanwhile_does_not_count(clock):
    limit = RefusalLimit(20, clock)
    for _ in range(20):
        limit.attempt(ADDRESS, wrong)
    step_s = WINDOW_S / 20
    for _ in range(10):
        assert limit.attempt(ADDRESS, never) is Outcome.OVER_LIMIT
        assert limit.refills_in_s(ADDRESS) == pytest.approx(step_s)
        clock.now += limit.refills_in_s(ADDRESS)
        assert limit.refills_in_s(ADDRESS) == 0
        assert limit.attempt(ADDRESS, wrong) is Outcome.WRONG
    clock.now += WINDOW_S
    outcomes = [limit.attempt(ADDRESS, wrong) for _ in range(30)]
    assert outcomes.count(Outcome.WRONG) == 20


def test_in_any_time_no_more_pass_than_the_budget_and_what_has_refilled(clock):
    limit = RefusalLimit(5, clock)
    passed = 0
    for _ in range(6000):  # ten a second, for ten minutes
        passed += limit.attempt(ADDRESS, wrong) is Outcome.WRONG
        clock.now += 0.1
    assert 5 + 49 <= passed <= 5 + 50


def test_one_that_is_exempt_is_looked_at_and_its_wrong_tokens_count(clock):
    limit = RefusalLimit(2, clock)
    for _ in range(10):
        assert limit.attempt(ADDRESS, wrong, is_exempt=True) is Outcome.WRONG
    assert limit.attempt(ADDRESS, right, is_exempt=True) is Outcome.RIGHT
    assert limit.attempt(ADDRESS, never) is Outcome.OVER_LIMIT
    clock.now += WINDOW_S / 2  # for one, however many there were
    assert limit.attempt(ADDRESS, right) is Outcome.RIGHT


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("[2001:db8:1:2::1]", "2001:db8:1:2::1%eth0", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("unix", "unix", True),
        ("", "unix", False),
    ],
)
def test_a_budget_is_of_an_address_or_of_a_network_of_ipv6(one, other, is_shared):
    assert (network_of(one) == network_of(other)) is is_shared


def test_addresses_are_spread_over_the_slots_by_a_key_that_no_other_server_has():
    first, second = RefusalLimit(1), RefusalLimit(1)
    addresses = [f"192.0.{high}.{low}" for high in range(16) for low in range(256)]
    slots = [first._slot(address) for address in addresses]
    assert all(0 <= slot < SLOTS for slot in slots)
    # 4096 addresses at random share 126 of 65,536 slots, give or take 11.
    assert 4096 - 200 < len(set(slots)) < 4096 - 60
    assert slots != [second._slot(address) for address in addresses]


def test_memory_does_not_grow_with_addresses(clock):
    limit = RefusalLimit(20, clock, slots=64)
    for number in range(5000):
        limit.attempt(f"10.{number // 250}.0.{number % 250}", wrong)
    assert len(limit._memory.bytes) == 64 * 8


def test_threads_together_have_one_budget(clock):
    limit = RefusalLimit(20, clock)
    outcomes = []

    def guess():
        outcomes.extend([limit.attempt(ADDRESS, wrong) for _ in range(200)])

    threads = [threading.Thread(target=guess) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count(Outcome.WRONG) == 20
    assert len(outcomes) == 1600


def test_forked_processes_together_have_one_budget(clock):
    limit = RefusalLimit(50, clock)
    begin_read, begin_write = os.pipe()
    result_read, result_write = os.pipe()
    pids = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            os.close(begin_write)
            os.read(begin_read, 1)  # until all are there
            passed = [limit.attempt(ADDRESS, wrong) for _ in range(2000)].count(Outcome.WRONG)
            os.write(result_write, bytes([passed]))
            os._exit(0)
        pids.append(pid)
    os.close(begin_read)
    os.close(begin_write)
    passed = [os.read(result_read, 1)[0] for _ in pids]
    for pid in pids:
        os.waitpid(pid, 0)
    os.close(result_read)
    os.close(result_write)
    # A process that waits long for one that does not run meanwhile goes on beside it.
    assert 50 <= sum(passed) < 60
    assert limit.attempt(ADDRESS, never) is Outcome.OVER_LIMIT


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_ends_or_stops_while_it_looks_holds_up_no_other(clock, number):
    limit = RefusalLimit(20, clock)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:

        def is_right():
            os.write(write, b"x")
            signal.pause()

        limit.attempt(ADDRESS, is_right)
        os._exit(0)
    os.read(read, 1)
    os.kill(pid, number)
    os.waitpid(pid, os.WUNTRACED)
    assert limit.attempt(ADDRESS, wrong) is Outcome.WRONG
    if number == signal.SIGSTOP:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    os.close(read)
    os.close(write)
