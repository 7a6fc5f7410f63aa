"""Real servers refuse poisoned and senseless calls, name who has sent them, and go on."""

import grpc
import numpy as np
import pytest
from fuzz.services import calls_in
from fuzz.targets import seeds
from processes import SMALL_SAC, Training, free_port

from relaax.errors import BridgeError
from relaax.parameters import Bridge
from relaax.replay import replay_pb2
from relaax.replay.client.stub import ReplayStub

pytestmark = pytest.mark.integration

#: Beside what is expected: a server failed, or has ended.
FAILED = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}


def call_with_nonsense(url: str, methods: list[str], target: str) -> None:
    """Call each method with the bytes of all calls that the fuzzer starts from."""
    bodies = {call[1:] for seed in seeds(target) for call in calls_in(seed.read_bytes())}
    with grpc.insecure_channel(url) as channel:
        for method in methods:
            call = channel.unary_unary(method)
            for body in (*sorted(bodies), b"\xff" * 100, b"\0" * 100_000):
                done = call.future(body, timeout=30)
                assert done.code() not in FAILED, (method, done.details())


def test_a_parameter_server_refuses_poison_and_nonsense_and_goes_on(
    training: Training, bridge: Bridge
):
    server = training.start_parameter_server()
    before = bridge.get_values()
    for gradient in (np.full_like(before.vector, np.nan), before.vector[1:]):
        with pytest.raises(BridgeError, match=r"sent from 127\.0\.0\.1:\d+"):
            bridge.apply_gradients(gradient)
    server.says(r"a call from 127\.0\.0\.1:\d+ failed")
    assert bridge.get_values().vector.tobytes() == before.vector.tobytes()
    names = "GetEvaluations GetPlaces GetStatus Pull Push StoreScalarMetric"
    methods = [f"/relaax.ParameterServer/{name}" for name in names.split()]
    call_with_nonsense(training.parameter_server_url, methods, "parameter_server")
    after = bridge.synchronize(np.full_like(before.vector, 1e-6), 1)
    assert np.isfinite(after.vector).all()
    assert after.version.number == before.version.number + 1


def test_a_replay_server_refuses_poison_and_nonsense_and_goes_on(training: Training):
    url = f"127.0.0.1:{free_port()}"
    training.configure(SMALL_SAC, learner={"replay-servers": [url]})
    training.start_parameter_server()
    server = training.start_replay_server(url)
    stub = ReplayStub(url)
    schema, _ = stub.describe()
    stub.open("w", schema)
    run = replay_pb2.Run(environment=0, first=0, count=2)
    good = list(schema.rows(2).values())
    flags = np.array([1, 2], np.uint8)
    floats = next(number for number, column in enumerate(good) if column.dtype.kind == "f")
    poisoned = [column.copy() for column in good]
    poisoned[floats].reshape(-1)[0] = np.nan
    with pytest.raises(BridgeError, match=r"is not finite \(sent from 127\.0\.0\.1:\d+\)"):
        stub.append("w", [run], flags, poisoned)
    server.says(r"a call from 127\.0\.0\.1:\d+ was refused: column .* is not finite")
    names = "Append Close Describe GetStats Open Sample UpdatePriorities Watch"
    methods = [f"/relaax.replay.Replay/{name}" for name in names.split()]
    call_with_nonsense(url, methods, "replay")
    stub.open("w", schema)
    assert stub.append("w", [run], flags, good) == [2]
    stub.close()
