"""What the soak does to links and processes, and how it adds up what became of steps."""

import socket
import threading
from itertools import islice

import numpy as np
import pytest
from processes import free_port
from soak_client import ANSWERED, EPISODE_STEPS, EPISODES, SENT, ClientCounts
from soak_entries import Entry, Ledger
from soak_environment import Counted
from soak_links import Cut, Links
from soak_rollbacks import STEPS_BETWEEN_LOOKS, Look, Rollback, at_end
from soak_schedule import MAY_SUFFER, schedule
from soak_trends import Trend, trend_of
from soak_usage import Sampling, descriptor_check, early_and_late, memory_check


@pytest.fixture(name="link")
def _link():
    """A link before a server that sends back what comes on its first connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def echo():
        connection, _ = listener.accept()
        with connection:
            while chunk := connection.recv(100):
                connection.sendall(chunk)

    thread = threading.Thread(target=echo, daemon=True)
    thread.start()
    links = Links()
    host, port = listener.getsockname()
    yield links.add(f"127.0.0.1:{free_port()}", f"{host}:{port}")
    links.close()
    thread.join(10)
    listener.close()


@pytest.fixture(name="client")
def _client(link):
    with connected(link) as client:
        client.sendall(b"before")
        assert client.recv(100) == b"before"
        yield client


def connected(link):
    host, _, port = link.url.rpartition(":")
    return socket.create_connection((host, int(port)), 10)


def test_a_link_that_refuses_breaks_connections_until_it_is_healed(link, client):
    link.cut(Cut.REFUSED)
    with pytest.raises(ConnectionRefusedError):
        connected(link)
    assert client.recv(100) == b""  # it has ended
    link.heal()
    connected(link).close()


def test_what_was_sent_into_a_black_hole_passes_when_that_is_over(link, client):
    link.cut(Cut.BLACK_HOLE)
    client.sendall(b"lost?")
    client.settimeout(0.2)
    with pytest.raises(TimeoutError):
        client.recv(100)
    client.settimeout(10)
    link.heal()
    assert client.recv(100) == b"lost?"


def test_a_link_that_drips_passes_a_byte_at_a_time_and_the_rest_when_it_is_healed(link, client):
    link.cut(Cut.DRIP)
    client.sendall(b"drop")
    assert client.recv(100) == b"d"
    link.heal()
    rest = b""
    while len(rest) < 3:
        rest += client.recv(100)
    assert rest == b"rop"


def test_the_same_seed_draws_the_same_faults_and_each_role_in_turn():
    faults = list(islice(schedule(7), 3 * len(MAY_SUFFER)))
    assert faults == list(islice(schedule(7), len(faults)))
    assert faults != list(islice(schedule(8), len(faults)))
    for begin in range(0, len(faults), len(MAY_SUFFER)):
        assert {fault.role for fault in faults[begin : begin + len(MAY_SUFFER)]} == set(MAY_SUFFER)


def test_a_step_that_is_counted_twice_is_beyond_the_bounds():
    assert Entry("with workers", 0, 0, "").holds
    assert Entry("with workers", 3, 3, "").holds
    assert not Entry("with workers", 4, 3, "").holds
    assert not Entry("with replay servers", -1, 3, "").holds


def test_steps_that_are_neither_counted_nor_lost_are_unexplained():
    losses = [Entry("with workers", 3, 5, ""), Entry("with the first shard", 10, 10, "")]
    assert Ledger(100, 87, losses, on_the_way=0).unexplained == 0
    assert Ledger(100, 85, losses, on_the_way=0).unexplained == 2


def test_memory_of_a_short_run_is_flat_within_the_noise_or_if_it_comes_to_little_in_all():
    assert Trend("a server", minutes=10, mib=100, mib_an_hour=11.9, error=0.1).is_flat
    assert Trend("a server", minutes=10, mib=100, mib_an_hour=19.0, error=10.0).is_flat
    assert not Trend("a server", minutes=10, mib=100, mib_an_hour=19.0, error=0.1).is_flat


def test_memory_of_a_long_run_is_flat_within_the_noise_or_a_bound_of_its_own():
    assert Trend("a server", minutes=30, mib=100, mib_an_hour=6.3, error=0.3).is_flat
    assert Trend("a server", minutes=30, mib=1300, mib_an_hour=18.0, error=9.0).is_flat
    assert not Trend("a server", minutes=30, mib=1300, mib_an_hour=18.0, error=0.1).is_flat


LOOKS = [Look(at / 2, 20 * at) for at in range(40)]  # 40 steps a second, until 780


def test_a_rollback_at_an_end_is_bounded_by_what_was_counted_since_the_last_checkpoint():
    assert at_end(200, LOOKS, seconds=5.0) == Rollback(200, 220 + STEPS_BETWEEN_LOOKS)
    assert at_end(220 + STEPS_BETWEEN_LOOKS, LOOKS, seconds=5.0).holds
    assert not at_end(221 + STEPS_BETWEEN_LOOKS, LOOKS, seconds=5.0).holds
    assert not at_end(-1, LOOKS, seconds=5.0).holds
    assert not at_end(1, [], seconds=5.0).holds


def test_the_time_in_which_another_shard_was_away_does_not_count():
    away = [Look(20 + at / 2, LOOKS[-1].step) for at in range(60)]
    assert at_end(200, [*LOOKS, *away], seconds=5.0).most == at_end(200, LOOKS, seconds=5.0).most


def test_a_check_that_has_measured_nothing_does_not_hold():
    assert not memory_check([]).holds
    assert not descriptor_check([]).holds
    assert memory_check([Trend("a server", 1, 100, 1.0, 1.0)]).holds
    assert descriptor_check([("a server", 20, 28)]).holds
    assert not descriptor_check([("a server", 20, 28), ("another", 20, 29)]).holds


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ([20] * 30, (20, 20)),
        ([20] * 5 + [9] * 5 + [20] * 20, (20, 20)),  # it was cut off
        ([20] * 20 + [35] * 10, (20, 20)),  # another one's clients have come
        (range(30), (0, 15)),
    ],
)
def test_what_a_server_has_for_a_while_is_no_descriptor_that_it_keeps(counts, found):
    assert early_and_late(counts) == found


@pytest.mark.parametrize(("seconds", "sampling"), [(60, (1, 10)), (600, (5, 30)), (7200, (5, 30))])
def test_a_short_soak_looks_more_often_and_begins_earlier(seconds, sampling):
    assert Sampling.of(seconds) == Sampling(*sampling)


def test_the_slope_of_memory_and_its_error_agree_with_numpy():
    numbers = np.random.default_rng(1)
    seconds = np.arange(0.0, 1800.0, 2.0)
    mib = 100 + seconds / 3600 * 5 + numbers.normal(0, 1, len(seconds))
    found = trend_of("a server", seconds, mib)
    (slope, _), covariance = np.polyfit(seconds / 3600, mib, 1, cov=True)
    assert found.mib_an_hour == pytest.approx(slope)
    assert found.error == pytest.approx(np.sqrt(covariance[0, 0]))


def test_the_environment_of_an_actor_counts_steps_when_they_end_and_actions_that_follow(tmp_path):
    path = tmp_path / "steps"
    environment, counts = Counted(str(path), steps_a_second=1e6), ClientCounts(path)
    environment.reset()
    for number in range(EPISODE_STEPS):
        *_, is_over, is_cut_off, _ = environment.step(0)
        assert (is_over, is_cut_off) == (number == EPISODE_STEPS - 1, False)
        assert (counts[SENT], counts[ANSWERED]) == (number + 1, number)
    environment.reset()
    assert (counts[SENT], counts[ANSWERED], counts[EPISODES]) == (EPISODE_STEPS, EPISODE_STEPS, 1)
    again = Counted(str(path), steps_a_second=1e6)  # it counts on
    again.reset()
    again.step(1)
    assert (counts[SENT], counts[ANSWERED]) == (EPISODE_STEPS + 1, EPISODE_STEPS)
