"""The command, as a user runs it: real processes against a server that records."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from relaax.steps import START, TERMINATED

pytestmark = pytest.mark.integration

RUNNER = [sys.executable, "-m", "relaax.client.gymnasium_runner"]


TESTS = Path(__file__).parents[2]


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUNNER, *arguments], capture_output=True, text=True, timeout=120, check=False, cwd=cwd
    )


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*RUNNER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)


def test_the_episodes_asked_for_are_played_by_as_many_processes(server) -> None:
    result = run(
        "--rlx-server", server.url, "--env", "CartPole-v1", "--count", "2", "--episodes", "5"
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert " | episodes 5 | " in result.stdout
    assert server.accepted == 2
    assert sum(steps.flags[0] == TERMINATED for steps in server.steps) == 5


def test_environments_that_share_a_connection_are_counted_each(server) -> None:
    result = run(
        *("--rlx-server", server.url, "--env", "CartPole-v1"),
        *("--count", "5", "--per-connection", "5", "--episodes", "10"),
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert " of 5 | episodes 10 | steps/s " in result.stdout
    assert [hello.environments for hello in server.hellos] == [5]


def test_seeds_differ_between_processes_and_repeat_between_runs(start_recording_server) -> None:
    def first_states() -> list[list[float]]:
        server = start_recording_server()
        run(
            *("--rlx-server", server.url, "--env", "CartPole-v1"),
            *("--count", "2", "--seed", "3", "--episodes", "2"),
        )
        starts = [steps for steps in server.steps if steps.flags[0] & START]
        return sorted(steps.observations[0].tolist() for steps in starts)

    states = first_states()
    assert len(states) == 2
    assert states[0] != states[1]
    assert first_states() == states


def test_a_server_that_is_lost_after_a_session_means_that_training_is_over(server, close) -> None:
    server.greet = lambda number: close if number > 1 else None
    server.reply = lambda number, steps: close if len(server.steps) > 30 else None
    result = run("--rlx-server", server.url, "--env", "CartPole-v1", "--attempts", "1")
    assert result.returncode == 0
    assert (
        f"the RLX server at {server.url} does not answer any more: it has died, or the "
        "training is over" in result.stdout
    )


def test_a_server_that_was_never_reached_is_status_1(unused_url) -> None:
    result = run("--rlx-server", unused_url, "--env", "CartPole-v1", "--attempts", "1")
    assert result.returncode == 1
    assert f"never a session with the RLX server at {unused_url}" in result.stderr
    assert "gave up after one attempt" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_environment_is_status_2_and_one_line(unused_url) -> None:
    result = run("--rlx-server", unused_url, "--env", "NoSuchThing-v1", "--count", "2")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "NoSuchThing" in result.stderr


def test_an_environment_that_rlx_cannot_carry_is_status_2_and_one_line(unused_url) -> None:
    result = run("--rlx-server", unused_url, "--env", "text_environment:Words-v0", cwd=TESTS)
    assert result.returncode == 2
    assert result.stderr.startswith("text_environment:Words-v0: observations of Text(")
    assert result.stderr.count("\n") == 1


def test_actions_that_do_not_fit_are_status_1_and_one_line(start_recording_server) -> None:
    server = start_recording_server(action=17)
    result = run("--rlx-server", server.url, "--env", "CartPole-v1", "--count", "2")
    assert result.returncode == 1
    assert "is from 0 to 1, the server sent 17" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_and_its_processes(server, number: signal.Signals) -> None:
    with started("--rlx-server", server.url, "--env", "CartPole-v1", "--count", "2") as process:
        wait_until(lambda: server.accepted == 2 and len(server.steps) > 10)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (0, "")
    assert stdout.endswith("stopped\n")
    # The server's threads end when the connections of the two processes do.
    assert server.join_threads(30)


@pytest.mark.parametrize("is_served", [True, False])
def test_no_process_outlives_a_command_that_is_killed(
    server, unused_url: str, is_served: bool
) -> None:
    """Whether its members play or wait for a server; and none of them shows a traceback."""
    url = server.url if is_served else unused_url
    with started("--rlx-server", url, "--env", "CartPole-v1", "--count", "2") as process:
        family = psutil.Process(process.pid)
        wait_until(lambda: len(members_that_run(family)) == 2)
        wait_until(lambda: not is_served or len(server.steps) > 10)
        members = family.children(recursive=True)
        process.kill()
        _, stderr = process.communicate(timeout=60)
    _, running = psutil.wait_procs(members, timeout=60)
    assert (running, stderr) == ([], "")


def members_that_run(family: psutil.Process) -> list[psutil.Process]:
    """Return the environment processes that have more threads than when they begin."""
    return [
        m
        for m in family.children()
        if "spawn_main" in " ".join(m.cmdline()) and m.num_threads() > 1
    ]
