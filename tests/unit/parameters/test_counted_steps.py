"""Steps are counted once, however often the call that brings them is sent."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from processes import free_port

from relaax.algorithm_base import BridgeBase, Metrics, NullMetrics, Values, Version
from relaax.errors import ParameterServerAway
from relaax.parameters import Bridge, BridgeControl
from relaax.parameters.sender_totals import CountedSteps, SenderTotals


class Service(BridgeBase):
    """Counts steps; answers nothing before ``goes_on`` is set."""

    def __init__(self):
        self.global_t = 0
        self.calls = 0
        self.goes_on = threading.Event()
        self.goes_on.set()
        self._lock = threading.Lock()

    def increment_global_t(self, steps=1):
        with self._lock:
            self.global_t += steps
            self.calls += 1
            counted = self.global_t
        self.goes_on.wait(20)
        return counted

    def apply_gradients(self, gradients, computed_with=None):
        raise NotImplementedError

    def get_values(self, known=None):
        return Values(Version(0), self.global_t, None)

    def metrics(self) -> Metrics:
        return NullMetrics()


@pytest.fixture(name="service")
def _service():
    return Service()


@pytest.fixture(name="url")
def _url(service):
    url = f"127.0.0.1:{free_port()}"
    server = BridgeControl().start_parameter_server(url, service)
    yield url
    service.goes_on.set()
    server.stop(0)


def test_a_call_whose_answer_does_not_come_is_repeated_and_counted_once(service, url):
    service.goes_on.clear()
    with closing(Bridge(url, call_timeout_s=0.3)) as bridge, ThreadPoolExecutor(1) as thread:
        counted = thread.submit(bridge.increment_global_t, 5)
        threading.Timer(1.0, service.goes_on.set).start()  # after several attempts
        assert counted.result(20) == 5
        assert bridge.increment_global_t(2) == 7
    assert service.global_t == 7


def test_a_caller_that_tries_again_itself_counts_once_too(service, url):
    service.goes_on.clear()
    with closing(Bridge(url, call_timeout_s=0.2, retry_for_s=0.1)) as bridge:
        with pytest.raises(ParameterServerAway):
            bridge.increment_global_t(5)
        service.goes_on.set()
        assert bridge.increment_global_t(5 + 3) == 8  # with those that came meanwhile


def test_each_sender_has_its_own_count(service, url):
    with closing(Bridge(url)) as one, closing(Bridge(url)) as another:
        with ThreadPoolExecutor(8) as threads:
            for bridge in (one, another) * 20:
                threads.submit(bridge.increment_global_t, 3)
        assert one.increment_global_t(0) == 120


def test_what_a_call_of_an_unknown_sender_brings_is_counted():
    counted, told = [], []
    steps = CountedSteps(lambda count: (counted.append(count), sum(counted))[1], told.append)
    assert steps.count(5, sender=7, total=1005) == 5
    assert steps.count(5, sender=7, total=1005) == 5
    assert steps.count(8, sender=7, total=1008) == 8
    assert steps.count(4, sender=0, total=0) == 12  # of an old program
    assert counted == told == [5, 0, 3, 4]


def test_a_restart_knows_what_was_counted_in_the_checkpoint_that_it_has_restored():
    counted, senders = [], SenderTotals()
    senders.restore({7: 1005})
    steps = CountedSteps(lambda count: (counted.append(count), sum(counted))[1], senders=senders)
    assert steps.count(5, sender=7, total=1005) == 0
    assert steps.count(8, sender=7, total=1008) == 3
    assert steps.count(6, sender=8, total=2006) == 9  # of which it knows nothing
