"""Surreal's lists of metrics, and one log of all processes, in a real training with a learner."""

import contextlib
import re
import socket
from pathlib import Path

import pytest
from event_files import EventFiles
from processes import REPOSITORY, Training, wait_for

from relaax.protocol import FrameConnection, binary
from relaax.protocol.binary import Hello

pytestmark = pytest.mark.integration

SMALL_SAC = {
    "path": str(REPOSITORY / "algorithms" / "sac"), "state_size": [3], "action_size": 1,
    "action_low": -2, "action_high": 2, "hidden_layers": [8], "batch_size": 16, "n_step": 1,
    "learning_starts": 50, "updates_per_step": 0.5, "replay_size": 4096, "max_global_step": 2000,
}  # fmt: skip

#: Surreal's names are in docs/operations.md; these are ours, as TensorBoard has them.
OF_REPLAY = {
    "replay/steps", "replay/fill", "replay/steps_stored", "replay/items_drawn",
    "replay/sample_requests", "replay/steps_in_per_second", "replay/items_out_per_second",
    "replay/sample_requests_per_second", "replay/insert_time", "replay/sample_time",
    "replay/insert_load", "replay/sample_load", "replay/serialize_load",
    "replay/lifetime_utilization", "replay/current_utilization",
}  # fmt: skip
OF_LEARNER = {
    f"learner/{name}"
    for name in (
        "learn_time", "fetch_time", "publish_time", "sample_time", "prepare_time",
        "iteration_time", "updates_per_second", "items_per_second", "learn_load", "fetch_load",
        "publish_load", "batches_ready",
    )
}  # fmt: skip
OF_ACTORS = {
    f"actor/{name}" for name in ("publish_delay", "actions_per_update", "episodes_per_update")
}
OF_PARAMETER_SERVER = {
    f"parameter_server/{name}_per_second"
    for name in ("publishes", "reads", "bytes_in", "bytes_out")
}

LINE = re.compile(r"\d{4}-\d\d-\d\d [\d:,]{12} (?P<process>.+) \[\d+\] (?P<level>[A-Z]+): .*")


def make_a_worker_log(training: Training) -> None:
    """Begin as the protocol says, and send what it does not allow."""
    host, _, port = training.rlx_server_url.rpartition(":")
    messages = FrameConnection(socket.create_connection((host, int(port))), frame_timeout_s=60)
    with contextlib.closing(messages):
        messages.send(binary.encode_hello(Hello("a run", "a simulator", environments=1)))
        messages.send(b"no message")


@pytest.fixture(name="trained")
def _trained(training: Training) -> Training:
    """A training that is over, all of whose servers have written into one file."""
    log = str(training.directory / "log")
    training.configure(SMALL_SAC, {"metrics-dir": str(training.directory / "metrics")})
    for start in (
        training.start_parameter_server, training.start_learner, training.start_rlx_server
    ):  # fmt: skip
        start("--log-file", log)
    make_a_worker_log(training)
    wait_for(lambda: "worker of" in Path(log).read_text(), "a line of a worker")
    training.start_environments(2, "--attempts", "2", env="Pendulum-v1")
    assert [process.wait() for process in training.processes] == [0, 0, 0, 0]
    return training


def test_what_surreal_measures_is_measured_and_in_one_log_all_processes_have_names(trained):
    values = {}
    for event in EventFiles(trained.directory / "metrics").new():
        for value in event.summary.value:
            values.setdefault(value.tag, []).append(value.simple_value)
    missing = (OF_REPLAY | OF_LEARNER | OF_ACTORS | OF_PARAMETER_SERVER) - set(values)
    assert missing == set()
    for tag in OF_REPLAY | OF_LEARNER | OF_ACTORS | OF_PARAMETER_SERVER:
        assert min(values[tag]) >= 0, tag
    assert min(values["actor/actions_per_update"]) > 0
    for name in ("learn", "fetch", "publish"):
        assert max(values[f"learner/{name}_load"]) <= 100, name
    # None was evicted: all that were ever stored are there.
    assert max(values["replay/steps_stored"]) == max(values["replay/steps"])
    assert max(values["replay/fill"]) <= 100

    written = (trained.directory / "log").read_text().splitlines()
    lines = [LINE.fullmatch(line) for line in written]
    assert [line for line in written if not LINE.fullmatch(line)] == []
    names = {line["process"] for line in lines}
    assert {"relaax-parameter-server", "relaax-rlx-server"} <= names
    assert any(name.startswith("relaax-rlx-server: worker of 127.0.0.1:") for name in names)
