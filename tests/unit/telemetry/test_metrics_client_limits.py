"""What clients name takes no more room than it may; all else is stored."""

import logging
import threading

import pytest
from clock import Clock
from stored_metrics import StoredMetrics

from relaax.telemetry.throttled_log import RateLimit
from relaax.telemetry.training import ClientMetricLimits
from relaax.telemetry.training.client_limits import BURST_S


class Limited:
    """Metrics with limits, a clock, and what is behind them."""

    def __init__(self, most_names=3, most_per_s=100):
        self.clock, self.stored = Clock(), StoredMetrics()
        self.metrics = ClientMetricLimits(self.stored, most_names, most_per_s, self.clock)

    def count(self, name):
        return len(self.stored.values.get(name, []))

    def dropped(self, limit):
        (family,) = self.metrics.figures()
        return {tuple(each.labels.values()): each.value for each in family.samples}[limit,]


def test_a_name_beyond_the_limit_is_dropped_and_those_before_it_go_on(caplog):
    limited = Limited(most_names=2)
    names = ["client/a", "client/b", "client/a", "client/c", "evaluation/client d", "client/b"]
    for name in names:
        limited.metrics.scalar(name, 1.0, 7)
    assert limited.stored.values == {"client/a": [(1.0, 7)] * 2, "client/b": [(1.0, 7)] * 2}
    assert (limited.dropped("names"), limited.dropped("rate")) == (2, 0)
    assert "the metric 'client/c' is dropped: environments have named 2 others" in caplog.text
    assert "(--max-client-metric-names)" in caplog.text


def test_names_of_the_service_have_no_limit():
    limited = Limited(most_names=1, most_per_s=1)
    for number in range(1000):
        limited.metrics.scalar(f"learner/{number}", 1.0)
    assert len(limited.stored.values) == 1000
    assert (limited.dropped("names"), limited.dropped("rate")) == (0, 0)


@pytest.mark.parametrize("prefix", ["client/", "evaluation/client "])
def test_metrics_of_all_clients_beyond_the_rate_are_dropped_and_later_ones_stored_again(
    prefix, caplog
):
    limited = Limited(most_per_s=100)
    most = int(100 * BURST_S)
    for _ in range(most + 5):
        limited.metrics.scalar(f"{prefix}a", 1.0)
    assert limited.count(f"{prefix}a") == most
    assert limited.dropped("rate") == 5
    assert "environments send more than 100 in a second (--max-client-metric-rate)" in caplog.text
    limited.clock.now += 0.5
    for _ in range(60):
        limited.metrics.scalar(f"{prefix}a", 1.0)
    assert limited.count(f"{prefix}a") == most + 50


def test_time_without_metrics_allows_no_more_at_once_than_the_burst():
    limited = Limited(most_per_s=10)
    limited.clock.now += 1000 * BURST_S
    for _ in range(1000):
        limited.metrics.scalar("client/a", 1.0)
    assert limited.count("client/a") == 10 * BURST_S


def test_a_flood_of_names_is_one_line_of_the_log_that_says_how_many(caplog, log_clock):
    limited = Limited(most_names=1)
    for number in range(1001):
        limited.metrics.scalar(f"client/{number}", 1.0)
    log_clock.now += 60
    limited.metrics.scalar("client/another", 1.0)
    assert caplog.text.count("--max-client-metric-names") == 2
    assert "(999 more since the last such message)" in caplog.text


def test_many_threads_store_exactly_as_many_as_they_may():
    limited = Limited(most_names=8, most_per_s=5)

    def send():
        for number in range(160):
            limited.metrics.scalar(f"client/{number % 16}", 1.0)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sum(limited.count(name) for name in limited.stored.values) == 5 * BURST_S
    assert len(limited.stored.values) <= 8
    assert limited.dropped("names") + limited.dropped("rate") == 4 * 160 - 5 * BURST_S


def test_a_name_of_which_nothing_is_stored_takes_no_place():
    limited = Limited(most_names=2, most_per_s=1)
    for _ in range(int(BURST_S)):
        limited.metrics.scalar("client/a", 1.0)
    for name in ("client/b", "client/c", "client/d"):
        limited.metrics.scalar(name, 1.0)
    assert (limited.dropped("names"), limited.dropped("rate")) == (0, 3)
    limited.clock.now += BURST_S
    limited.metrics.scalar("client/d", 1.0)
    assert limited.count("client/d") == 1


def test_a_name_beyond_the_limit_uses_up_nothing_of_the_rate():
    limited = Limited(most_names=1, most_per_s=1)
    limited.metrics.scalar("client/a", 1.0)
    for number in range(100):
        limited.metrics.scalar(f"client/{number}", 1.0)
    for _ in range(int(BURST_S) - 1):
        limited.metrics.scalar("client/a", 1.0)
    assert (limited.count("client/a"), limited.dropped("rate")) == (BURST_S, 0)


class SlowLog(logging.Handler):
    """Keeps who writes waiting until ``may_go_on``."""

    def __init__(self):
        super().__init__()
        self.addFilter(RateLimit())
        self.is_written_to, self.may_go_on = threading.Event(), threading.Event()

    def emit(self, record):
        self.is_written_to.set()
        self.may_go_on.wait(20)


def test_allowed_metrics_do_not_wait_for_the_log(request):
    log, slow = logging.getLogger("relaax"), SlowLog()
    log.addHandler(slow)
    request.addfinalizer(lambda: log.removeHandler(slow))
    limited = Limited(most_names=1)
    limited.metrics.scalar("client/a", 1.0)
    writing = threading.Thread(target=limited.metrics.scalar, args=("client/b", 1.0))
    writing.start()
    assert slow.is_written_to.wait(20)
    send = [
        threading.Thread(target=limited.metrics.scalar, args=(f"client/{name}", 1.0))
        for name in "ab"
    ]
    for thread in send:
        thread.start()
    for thread in send:
        thread.join(5)
    waits = [thread.is_alive() for thread in send]
    slow.may_go_on.set()
    writing.join(20)
    assert waits == [False, False]
    assert limited.count("client/a") == 2
