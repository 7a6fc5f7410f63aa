"""Both ends of the bridge over real gRPC on the loopback interface."""

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from processes import free_port

from relaax.algorithm_base import (
    BridgeBase,
    Gradient,
    Metrics,
    NewValues,
    Parameters,
    Phase,
    Statistics,
    StepCounter,
    Values,
    Version,
)
from relaax.errors import BridgeError, ParameterServerAway
from relaax.net import channel_options
from relaax.parameters import Bridge, BridgeControl, bridge_pb2, bridge_pb2_grpc
from relaax.parameters import service as bridge_service
from relaax.parameters.control import most_bytes
from relaax.parameters.optimizers import SGD
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.parameters.published import PublishedParameters
from relaax.parameters.stub import MetricsSender
from relaax.telemetry.metrics import WAIT_OF

DEADLINE_S = 20


class Service(BridgeBase):
    """A parameter server that adds gradients up."""

    def __init__(self, size=3):
        self.vector = np.zeros(size, np.float32)
        self.version = 0
        self.global_t = 0
        self.stored = _Stored()
        self._lock = threading.Lock()

    def increment_global_t(self, steps=1):
        with self._lock:
            self.global_t += steps
            return self.global_t

    def apply_gradients(self, gradients, computed_with=None):
        if gradients.shape != self.vector.shape:
            raise ValueError(f"{gradients.shape} is not {self.vector.shape}")
        with self._lock:
            self.vector = self.vector + gradients
            self.version += 1

    def get_values(self, known=None):
        with self._lock:
            is_current = known is not None and known.number == self.version
            vector = None if is_current else self.vector
            return Values(Version(self.version), self.global_t, vector)

    def metrics(self):
        return self.stored


class _Stored(Metrics):
    def __init__(self):
        self.values = []

    def scalar(self, name, y, x=None):
        self.values.append((name, y, x))


def wait_for(condition):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)


@pytest.fixture(name="address")
def _address():
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(name="serve")
def _serve(address):
    running = []

    def start(service):
        running.append(BridgeControl().start_parameter_server(address, service))
        return running[-1]

    yield start
    for server in running:
        server.stop(0)


@pytest.fixture(name="bridge")
def _bridge(address):
    bridge = Bridge(address)
    yield bridge
    bridge.close()


def test_gradients_values_and_steps_cross_the_bridge(serve, bridge):
    serve(Service())
    bridge.apply_gradients(np.array([1, 2, 3], np.float32))
    assert bridge.increment_global_t(4) == 4
    values = bridge.get_values()
    assert values.vector.tolist() == [1, 2, 3]
    assert (values.version.number, values.global_t) == (1, 4)


def test_metrics_are_copied_at_the_known_step_but_for_those_that_are_no_curves(serve, bridge):
    service, copies = Service(), _Stored()
    service.global_t = 40
    serve(service)
    bridge.copy_metrics_to(copies)
    bridge.phase()
    for name, x in (("learner/loss", None), ("evaluation/reward", 7), (f"{WAIT_OF}me: why", None)):
        bridge.metrics().scalar(name, 0.5, x)
    assert copies.values == [("learner/loss", 0.5, 40), ("evaluation/reward", 0.5, 7)]
    bridge.close()
    assert [name for name, _, _ in service.stored.values][:2] == [
        "learner/loss",
        "evaluation/reward",
    ]


def test_current_values_are_not_sent_again(serve, bridge):
    serve(Service())
    known = bridge.get_values().version
    assert bridge.get_values(known).vector is None
    bridge.apply_gradients(np.ones(3, np.float32))
    assert bridge.get_values(known).vector.tolist() == [1, 1, 1]


def test_one_call_applies_counts_and_brings_new_values(serve, bridge):
    serve(Service())
    known = bridge.get_values().version
    values = bridge.synchronize(np.ones(3, np.float32), 5, known)
    assert (values.vector.tolist(), values.version.number, values.global_t) == ([1, 1, 1], 1, 5)


def test_the_seeds_four_methods_are_enough_to_play_the_roles():
    counter: StepCounter = Service()
    assert (counter.add(2), counter.add(3)) == (2, 5)
    parameters: Parameters = Service()
    assert parameters.pull().vector.tolist() == [0, 0, 0]
    assert parameters.pull(Version(0)).vector is None
    values = parameters.push(Gradient(np.ones(3, np.float32), Version(0), 5))
    assert (values.vector.tolist(), values.version.number, values.global_t) == ([1, 1, 1], 1, 5)


def test_a_network_of_twenty_megabytes_crosses_the_bridge(serve, bridge):
    size = 5_000_000
    serve(Service(size))
    gradient = np.arange(size, dtype=np.float32)
    values = bridge.synchronize(gradient, 1, bridge.get_values().version)
    np.testing.assert_array_equal(values.vector, gradient)


def test_many_workers_at_once_lose_nothing(serve, address):
    service = Service()
    serve(service)

    def work():
        bridge = Bridge(address)
        version = bridge.get_values().version
        for _ in range(25):
            version = bridge.synchronize(np.ones(3, np.float32), 2, version).version
        bridge.close()

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (service.vector.tolist(), service.version, service.global_t) == ([200] * 3, 200, 400)


def test_versions_of_another_incarnation_are_unknown_and_their_gradients_refused_with_a_warning(
    serve, bridge, caplog
):
    first = serve(Service())
    old = bridge.get_values().version
    first.stop(0)
    service = Service()
    serve(service)
    assert bridge.get_values(old).vector.tolist() == [0, 0, 0]
    values = bridge.synchronize(np.ones(3, np.float32), 5, old)
    assert values.vector.tolist() == [0, 0, 0]
    assert (service.version, service.global_t) == (0, 0)
    assert values.version.incarnation != old.incarnation
    (said,) = caplog.messages
    assert said.startswith("a gradient was refused: it was computed with values from before")
    assert said.endswith("its 5 steps are not counted")


def test_a_gradient_without_a_version_is_applied_by_whatever_parameter_server_there_is(
    serve, bridge, caplog
):
    first = serve(Service())
    bridge.get_values()
    first.stop(0)
    service = Service()
    serve(service)
    bridge.synchronize(np.ones(3, np.float32), 5)
    assert (service.version, service.global_t) == (1, 5)
    assert caplog.messages == []


def test_a_worker_waits_for_a_parameter_server_that_is_away(serve, bridge):
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(bridge.get_values)
        serve(Service())
        assert answer.result(DEADLINE_S).vector.tolist() == [0, 0, 0]


def test_it_is_said_that_it_is_away_and_that_it_answers_now(serve, address, caplog):
    waits, answers = f"waiting for parameter server {address}", f"server {address} answers now"
    with closing(Bridge(address, call_timeout_s=0.2)) as bridge, ThreadPoolExecutor(1) as thread:
        answer = thread.submit(bridge.get_values)
        wait_for(lambda: waits in caplog.text)
        assert answers not in caplog.text
        serve(Service())
        answer.result(DEADLINE_S)
        bridge.get_values()
    assert caplog.text.count(answers) == 1


def test_a_gradient_for_a_parameter_server_that_is_away_is_lost_with_a_warning(
    bridge, address, caplog
):
    bridge.wait_at_most(0.0)
    with pytest.raises(ParameterServerAway):  # of the values, which are waited for
        bridge.synchronize(np.ones(3, np.float32), 5)
    lost = f"a gradient, which counts 5 steps, may be lost: parameter server {address} has not"
    assert any(message.startswith(lost) for message in caplog.messages)


def test_statistics_for_a_parameter_server_that_is_away_are_not_called_a_gradient(
    bridge, address, caplog
):
    bridge.wait_at_most(0.0)
    with pytest.raises(ParameterServerAway):
        bridge.push(Statistics(np.ones(3, np.float32)))
    lost = f"an update of the filters' statistics may be lost: parameter server {address} has not"
    assert any(message.startswith(lost) for message in caplog.messages)
    assert "gradient" not in caplog.text


def test_retries_end(address):
    bridge = Bridge(address, call_timeout_s=0.2, retry_for_s=0.0)
    with pytest.raises(ParameterServerAway, match=f"parameter server {address} has not answered"):
        bridge.get_values()
    bridge.close()


def test_what_the_service_refuses_is_told_to_the_worker(serve, bridge):
    serve(Service())
    with pytest.raises(BridgeError, match=r"\(2,\) is not \(3,\)"):
        bridge.apply_gradients(np.ones(2, np.float32))


class Failing(Service):
    """Raises what it is given."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def increment_global_t(self, steps=1):
        raise self.error

    def get_values(self, known=None):
        raise self.error

    def apply_gradients(self, gradients, computed_with=None):
        raise self.error


CALLS = {
    "get_values": lambda bridge: bridge.get_values(),
    "apply_gradients": lambda bridge: bridge.apply_gradients(np.ones(3, np.float32)),
    "synchronize": lambda bridge: bridge.synchronize(np.ones(3, np.float32), 1),
    "increment_global_t": lambda bridge: bridge.increment_global_t(),
    "phase": lambda bridge: bridge.phase(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", [ValueError("too early"), KeyError("early")])
def test_what_the_service_raises_is_one_traceback_there_and_a_reason_for_each_worker(
    serve, bridge, caplog, call, error
):
    serve(Failing(error))
    for _ in range(3):
        with pytest.raises(BridgeError, match=f"{type(error).__name__}: .*early"):
            CALLS[call](bridge)
    assert caplog.text.count("Traceback") == 1
    assert len(re.findall(r"a call from 127\.0\.0\.1:\d+ failed again", caplog.text)) == 2


def test_values_that_are_none_are_an_error_of_the_service_too(serve, bridge, caplog):
    service = Service()
    service.get_values = lambda known=None: None
    serve(service)
    with pytest.raises(BridgeError, match="AttributeError"):
        bridge.get_values()
    assert caplog.text.count("Traceback") == 1


def test_metrics_arrive_with_and_without_x(serve, bridge):
    service = Service()
    serve(service)
    bridge.metrics().scalar("loss", 0.25)
    bridge.metrics().scalar("loss", 0.5, x=7)
    wait_for(lambda: len(service.stored.values) == 2)
    assert service.stored.values == [("loss", 0.25, None), ("loss", 0.5, 7.0)]


def test_metrics_for_a_parameter_server_that_is_away_do_not_hold_the_worker_up(caplog):
    """More than wait at most: every call returns, the rest is dropped and counted."""
    sender = MetricsSender(lambda metrics: None, interval_s=600, capacity=10)
    for number in range(30):
        sender.scalar("loss", number)
    sender.close()
    assert caplog.messages == ["20 metrics were dropped: too many at once"]


def test_the_phase_of_the_training_is_told(serve, bridge):
    server = serve(Service())
    assert bridge.phase() is Phase.TRAINING
    server.set_phase(Phase.CLOSING)
    assert bridge.phase() is Phase.CLOSING


def test_one_that_is_about_to_stop_is_as_if_it_were_away(serve, bridge, address, caplog):
    server = serve(service := Service())
    version = bridge.get_values().version
    assert bridge.increment_global_t(5) == 5
    server.refuse_calls()
    bridge.wait_at_most(0.0)
    is_away = f"parameter server {address} has not answered for 0 s"
    for call in (bridge.increment_global_t, bridge.get_values, bridge.phase):
        with pytest.raises(ParameterServerAway, match=is_away):
            call()
    with pytest.raises(ParameterServerAway, match="the parameter server is about to stop"):
        bridge.push(NewValues(np.ones(3, np.float32), 1))
    with pytest.raises(ParameterServerAway, match=is_away):  # of the values behind the gradient
        bridge.synchronize(np.ones(3, np.float32), 5, version)
    lost = f"a gradient, which counts 5 steps, may be lost: parameter server {address} has not"
    assert f"{lost} confirmed it (the parameter server is about to stop)" in caplog.messages
    assert (service.version, service.global_t) == (0, 5)


class SlowToCount(Service):
    """Counts steps when ``goes_on`` is set."""

    def __init__(self):
        super().__init__()
        self.has_begun, self.goes_on = threading.Event(), threading.Event()

    def increment_global_t(self, steps=1):
        if steps:
            self.has_begun.set()
            assert self.goes_on.wait(DEADLINE_S)
        return super().increment_global_t(steps)


def test_one_that_is_about_to_stop_waits_for_what_has_begun(serve, bridge, address, monkeypatch):
    monkeypatch.setattr(bridge_service, "CALL_S", DEADLINE_S)  # a slow machine is no failure
    server = serve(service := SlowToCount())

    def is_closed():
        with closing(Bridge(address, retry_for_s=0.0)) as another:
            try:
                another.phase()
            except ParameterServerAway:
                return True
            return False

    def stop():
        server.refuse_calls()
        return service.global_t

    with ThreadPoolExecutor(2) as threads:
        counted = threads.submit(bridge.increment_global_t, 5)
        assert service.has_begun.wait(DEADLINE_S)
        stopped = threads.submit(stop)
        wait_for(is_closed)
        service.goes_on.set()
        assert stopped.result() == counted.result() == 5


def test_what_takes_longer_than_one_that_stops_waits_is_not_answered(
    serve, bridge, monkeypatch, caplog
):
    """It may not be saved: to its caller the parameter server is away."""
    monkeypatch.setattr(bridge_service, "CALL_S", 0.01)
    server = serve(service := SlowToCount())
    bridge.wait_at_most(0.0)
    with ThreadPoolExecutor(1) as thread:
        counted = thread.submit(bridge.increment_global_t, 5)
        assert service.has_begun.wait(DEADLINE_S)
        server.refuse_calls()
        assert "1 calls take too long to wait for: their updates may be lost" in caplog.messages
        service.goes_on.set()
        with pytest.raises(ParameterServerAway):
            counted.result()


def test_a_port_in_use_is_an_error(serve, address):
    serve(Service())
    with pytest.raises(OSError, match=f"cannot listen at {address}"):
        BridgeControl().start_parameter_server(address, Service())


def test_health_and_reflection_are_served(serve, address):
    serve(Service())
    with grpc.insecure_channel(address) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        reply = check(health_pb2.HealthCheckRequest(service="relaax.ParameterServer"))
        assert reply.status == health_pb2.HealthCheckResponse.SERVING
        ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        listed = next(iter(ask(iter([request])))).list_services_response.service
        assert "relaax.ParameterServer" in {service.name for service in listed}


def test_steps_that_a_parameter_server_has_lost_are_counted(caplog):
    """Also where it has gone beyond what it had before, until it is asked again."""
    url, service = f"127.0.0.1:{free_port()}", Service()
    service.global_t = 500
    bridge = Bridge(url)
    for restored, reached in ((500, 510), (320, 900), (900, 900)):
        service.global_t = restored
        server = BridgeControl().start_parameter_server(url, service)
        service.global_t = reached
        assert bridge.phase() is Phase.TRAINING
        server.stop(0)
    bridge.close()
    (said,) = [each.getMessage() for each in caplog.records if "lost" in each.getMessage()]
    assert said == (
        f"parameter server {url} started again and went back from global step 510 to 320: at "
        "least 190 steps are lost (--checkpoint-interval)"
    )


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_a_poisoned_gradient_is_refused_with_the_address_that_has_sent_it(
    serve, bridge, caplog, poison
):
    store = ParameterStore(np.zeros(3, np.float32), SGD(3, 0.0), lambda _: 0.1)
    serve(ParameterService(store, _Stored()))
    bridge.synchronize(np.ones(3, np.float32), 1)
    before = store.pull()
    for gradient in ([1.0, poison, 1.0], [1.0, 1.0]):
        with pytest.raises(BridgeError, match=r"sent from 127\.0\.0\.1:\d+"):
            bridge.apply_gradients(np.array(gradient, np.float32))
    after = store.pull()
    assert after.vector.tobytes() == before.vector.tobytes()
    assert (after.version, after.global_t) == (before.version, before.global_t)
    assert re.search(r"a call from 127\.0\.0\.1:\d+ failed", caplog.text)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_poisoned_parameters_are_refused_with_the_address_that_has_sent_them(
    serve, bridge, caplog, poison
):
    published = PublishedParameters(np.zeros(3, np.float32))
    serve(ParameterService(published, _Stored()))
    bridge.push(NewValues(np.ones(3, np.float32), 1))
    for vector in ([1.0, poison, 1.0], [1.0, 1.0]):
        with pytest.raises(BridgeError, match=r"sent from 127\.0\.0\.1:\d+"):
            bridge.push(NewValues(np.array(vector, np.float32), 2))
    assert bridge.get_values().vector.tolist() == [1.0, 1.0, 1.0]
    assert re.search(r"a call from 127\.0\.0\.1:\d+ failed", caplog.text)


def test_a_message_that_is_compressed_is_refused_before_it_is_unpacked(serve, address):
    serve(Service())
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary("/relaax.ParameterServer/IncrementGlobalT")
        with pytest.raises(grpc.RpcError) as refused:
            call(bytes(2 * 1024 * 1024), compression=grpc.Compression.Gzip, timeout=DEADLINE_S)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "gzip" in refused.value.details()


def test_a_message_may_be_twice_as_large_as_the_values_and_4_mib(serve, bridge):
    serve(Service(2_000_000))
    bridge.apply_gradients(np.ones(2_000_000, np.float32))
    with pytest.raises(BridgeError, match="is not"):  # by what knows the size
        bridge.apply_gradients(np.ones(4_000_000, np.float32))
    with pytest.raises(BridgeError, match="larger than max"):
        bridge.apply_gradients(np.ones(5_100_000, np.float32))


@pytest.mark.parametrize("service", [Failing(ValueError("too early")), Service()])
def test_a_service_without_values_takes_256_mib(service):
    service.vector = None
    assert most_bytes(service) == 256 * 1024 * 1024


def test_values_of_more_than_a_gigabyte_have_no_limit():
    assert channel_options.most_bytes_of(4 * 2**28) == -1
    assert channel_options.most_bytes_of(4 * 2**27) == 2**30 + 4 * 1024 * 1024


@pytest.mark.parametrize("steps", [10**9 + 1, 2**64 - 1])
def test_more_steps_than_any_call_brings_are_refused_and_not_counted(serve, bridge, address, steps):
    """Twice, the largest number made a sum that no message can hold, nor the next answer."""
    store = ParameterStore(np.zeros(3, np.float32), SGD(3, 0.0), lambda _: 0.1)
    serve(ParameterService(store, _Stored()))
    with grpc.insecure_channel(address) as channel:
        stub = bridge_pb2_grpc.ParameterServerStub(channel)
        stub.IncrementGlobalT(bridge_pb2.Steps(count=1, sender=5, total=1), timeout=DEADLINE_S)
        for request in (
            bridge_pb2.Steps(count=steps),
            bridge_pb2.Steps(count=steps, sender=7, total=steps),
        ):
            with pytest.raises(grpc.RpcError, match="steps came in one call"):
                stub.IncrementGlobalT(request, timeout=DEADLINE_S)
        with pytest.raises(grpc.RpcError, match="steps came in one call"):
            stub.Push(bridge_pb2.Update(vector=bytes(12), steps=steps), timeout=DEADLINE_S)
        too_much = bridge_pb2.Steps(count=1, sender=5, total=min(steps + 1, 2**64 - 1))
        assert stub.IncrementGlobalT(too_much, timeout=DEADLINE_S).global_t == 2
    assert bridge.increment_global_t(1) == 3
    assert store.version == 0


def test_an_iteration_that_no_checkpoint_can_keep_is_refused(serve, bridge):
    published = PublishedParameters(np.zeros(3, np.float32))
    serve(ParameterService(published, _Stored()))
    with pytest.raises(BridgeError, match=r"iteration 9223372036854775808 is above"):
        bridge.push(NewValues(np.ones(3, np.float32), 2**63))
    bridge.push(NewValues(np.ones(3, np.float32), 2**63 - 1))
    assert published.snapshot().slots["published/iteration"].dtype == np.int64


@pytest.mark.parametrize(
    ("method", "data"),
    [
        ("Push", b"\0"),
        ("Push", b"\x0a\xff"),
        ("Push", b"\x0a\3abc"),  # a vector of three bytes
        ("Pull", b"\0"),
    ],
)
def test_bytes_that_are_no_message_are_refused_with_the_address_that_has_sent_them(
    serve, address, caplog, method, data
):
    serve(Service())
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(f"/relaax.ParameterServer/{method}")
        with pytest.raises(grpc.RpcError, match=r"\(sent from 127\.0\.0\.1:\d+\)") as refused:
            call(data, timeout=DEADLINE_S)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert re.search(r"a call from 127\.0\.0\.1:\d+ was refused", caplog.text)
    assert "Traceback" not in caplog.text


def test_a_caller_that_was_quiet_for_long_connects_again_without_an_error(monkeypatch):
    monkeypatch.setattr(channel_options, "IDLE_MS", 300)
    url = f"127.0.0.1:{free_port()}"
    server = BridgeControl().start_parameter_server(url, Service())
    left = threading.Event()
    with grpc.insecure_channel(url, channel_options.CLIENT) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S, wait_for_ready=True)
        channel.subscribe(lambda state: state is grpc.ChannelConnectivity.IDLE and left.set())
        assert left.wait(DEADLINE_S)
        check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S)
    server.stop(0)
