"""What dies, and what goes on. CartPole through real processes."""

import contextlib
import os
import signal
import time

import psutil
import pytest
from event_scalars import beginnings
from processes import SMALL_DA3C, Process, Training, wait_for
from worker_modes import IN_BOTH_MODES, SEVERAL_IN_BOTH_MODES, SHARED

from relaax.parameters import Bridge

pytestmark = pytest.mark.integration

#: Each signal, and each way to share workers, once.
SIGNALS_AND_WORKERS = pytest.mark.parametrize(
    ("number", "training"),
    [(signal.SIGINT, "connection"), (signal.SIGTERM, 1)],
    indirect=["training"],
)


def steps(bridge: Bridge) -> int:
    return bridge.increment_global_t(0)


def wait_for_progress(bridge: Bridge, more: int = 200) -> int:
    """Wait until workers have taken ``more`` steps; return the global step then."""
    target = steps(bridge) + more
    return int(wait_for(lambda: steps(bridge) >= target and steps(bridge), "progress"))


def connections(rlx_server: Process) -> list[int]:
    """The pids of the server's children, each as often as it holds a connection of a client."""
    port = int(rlx_server.output().rpartition("serving at ")[2].split("\n")[0].rpartition(":")[2])
    found = []
    for child in rlx_server.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            held = [c for c in child.net_connections("tcp") if c.laddr and c.laddr.port == port]
            found += [child.pid] * len(held)
    return found


def workers(rlx_server: Process) -> set[int]:
    return set(connections(rlx_server))


def served(rlx_server: Process) -> int:
    return len(connections(rlx_server))


def wait_for_workers(training: Training, rlx_server: Process, connections: int) -> set[int]:
    """Wait until so many connections are served; return the workers' processes."""
    shared = training.workers
    count = connections if shared == "connection" else min(connections, int(shared))
    wait_for(lambda: served(rlx_server) == connections, f"{connections} connections served")
    wait_for(lambda: len(workers(rlx_server)) == count, f"{count} workers serving")
    return workers(rlx_server)


def latest_checkpoint(training: Training) -> int:
    """The highest step with a manifest, or -1."""
    saved = training.checkpoints.glob("cp-*.json")
    return max((int(path.stem.removeprefix("cp-")) for path in saved), default=-1)


@SEVERAL_IN_BOTH_MODES
def test_a_killed_worker_is_replaced_and_the_others_do_not_notice(
    training: Training, bridge: Bridge
):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    training.start_environments(3, is_paced=True)
    before = wait_for_workers(training, rlx_server, 3)
    wait_for_progress(bridge)
    victim = before.pop()
    os.kill(victim, signal.SIGKILL)
    rlx_server.says(rf"\(pid {victim}\) was killed by SIGKILL")
    after = wait_for_workers(training, rlx_server, 3)
    assert before < after
    assert victim not in after
    wait_for_progress(bridge)


@IN_BOTH_MODES
def test_a_killed_client_ends_its_own_connection_alone(training: Training, bridge: Bridge):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    training.start_environments(2, is_paced=True)
    before = wait_for_workers(training, rlx_server, 2)
    doomed = training.start_environments(1, is_paced=True)
    lonely = wait_for_workers(training, rlx_server, 3) - before
    wait_for_progress(bridge)
    doomed.kill_family()
    for pid in lonely:  # the worker of that connection, where each has its own
        rlx_server.says(rf"\(pid {pid}\) ended")
    assert wait_for_workers(training, rlx_server, 2) == before
    wait_for_progress(bridge)


@SEVERAL_IN_BOTH_MODES
def test_a_killed_rlx_server_leaves_nothing_behind_and_its_clients_come_back(
    training: Training, bridge: Bridge
):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    environments = training.start_environments(2, is_paced=True)
    wait_for_workers(training, rlx_server, 2)
    global_t = wait_for_progress(bridge)
    version = bridge.get_values().version
    family = rlx_server.children()
    assert len(family) == 3  # two workers and the watcher
    rlx_server.kill()
    wait_for(lambda: not any(process.is_running() for process in family), "the children's end")
    restarted = training.start_rlx_server()
    wait_for_workers(training, restarted, 2)
    assert environments.is_running()
    assert wait_for_progress(bridge) > global_t
    assert bridge.get_values().version.number > version.number
    assert bridge.get_values().version.incarnation == version.incarnation


@SHARED
def test_a_killed_parameter_server_resumes_from_its_last_checkpoint(
    training: Training, bridge: Bridge
):
    metrics = training.directory / "metrics"
    training.configure(SMALL_DA3C, {"checkpoint-interval": 5.0, "metrics-dir": str(metrics)})
    parameter_server = training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    training.start_environments(2, is_paced=True)
    served_by = wait_for_workers(training, rlx_server, 2)
    wait_for_progress(bridge)
    saved = wait_for(lambda: max(latest_checkpoint(training), 0), "a checkpoint")
    # The RLX server asks twice a second how far the training is.
    asked = time.monotonic() + 1.0
    wait_for(lambda: time.monotonic() > asked and bridge.add(0) > saved, "steps after it")
    parameter_server.kill()
    saved = latest_checkpoint(training)
    restarted = training.start_parameter_server()
    restarted.says(f"global step is {saved}\n")
    lost = rlx_server.says(
        rf"went back from global step (\d+) to {saved}: at least (\d+) steps are lost"
    )
    assert int(lost[1]) - int(lost[2]) == saved
    assert wait_for_progress(bridge) > saved
    assert workers(rlx_server) == served_by
    wait_for(lambda: beginnings(metrics) == [0, saved], "event files that begin where it does")


@SIGNALS_AND_WORKERS
def test_a_stopped_parameter_server_saves_and_workers_wait_for_the_next(
    training: Training, bridge: Bridge, number: signal.Signals
):
    parameter_server = training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    training.start_environments(1, is_paced=True)
    global_t = wait_for_progress(bridge)
    parameter_server.signal(number)
    assert parameter_server.wait() == 0
    (manifest,) = training.checkpoints.glob("cp-*.json")
    assert int(manifest.stem[3:]) >= global_t
    restarted = training.start_parameter_server()
    restarted.says(f"global step is {manifest.stem[3:]}\n")
    wait_for_progress(bridge)
    assert rlx_server.is_running()


@SIGNALS_AND_WORKERS
def test_a_stopped_rlx_server_takes_its_workers_along(
    training: Training, bridge: Bridge, number: signal.Signals
):
    training.start_parameter_server()
    rlx_server = training.start_rlx_server()
    training.start_environments(2, "--attempts", "2", is_paced=True)
    wait_for_workers(training, rlx_server, 2)
    wait_for_progress(bridge)
    family = rlx_server.children()
    rlx_server.signal(number)
    assert rlx_server.wait() == 0
    assert not [process for process in family if process.is_running()]
    assert "did not stop" not in rlx_server.output()
