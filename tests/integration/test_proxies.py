"""A training where variables of the environment name a proxy, as on many companies' machines."""

import os
import subprocess
import sys

import pytest
from http_proxy import http_proxy, name_a_dead_proxy
from processes import REPOSITORY, SMALL_SAC, Training, free_port

pytestmark = pytest.mark.integration


def health_in_a_container(port: int) -> str:
    """Return what the health check of the images prints."""
    return subprocess.run(
        [sys.executable, str(REPOSITORY / "deploy" / "containers" / "health")],
        env={**os.environ, "RELAAX_HTTP_PORT": str(port)},
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip


def test_variables_of_proxies_change_nothing_for_a_training(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica, a replay server, a learner, an RLX server, its environment and an actor."""
    name_a_dead_proxy(monkeypatch)
    replay, port = f"127.0.0.1:{free_port()}", free_port()
    training.configure(
        {**SMALL_SAC, "max_global_step": 4000},
        {"http-bind": f"127.0.0.1:{port}"},
        learner={"replay-servers": [replay]},
    )
    parameter_server = training.start_parameter_server()
    replica = f"127.0.0.1:{free_port()}"
    training.start_command(
        "relaax-parameter-server", "--bind", replica, "--replica-of", training.parameter_server_url,
        "--http-bind", f"127.0.0.1:{free_port()}",
    ).says("a replica of ")  # fmt: skip
    training.start_replay_server(replay)
    learner = training.start_learner()
    training.start_rlx_server("--parameter-server", replica)
    assert health_in_a_container(port) == "ok\n"
    training.start_actors(1, env="Pendulum-v1")
    parameter_server.says(r"training: step [1-9]")  # before the environments have taken all steps
    training.start_environments(1, env="Pendulum-v1")
    assert {process.wait() for process in training.processes} == {0}
    said = learner.says(r"stopped after ([\d,]+) steps of the learner; ([\d,]+) steps of")
    assert int(said[1].replace(",", "")) > 0


def test_servers_that_are_told_of_a_proxy_call_one_another_through_it(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_a_dead_proxy(monkeypatch)
    with http_proxy() as proxy:
        training.start_parameter_server()
        training.start_rlx_server("--proxy", f"http://{proxy.address}")
        environments = training.start_environments(1, "--episodes", "1")
        assert environments.wait() == 0, environments.output()
        training.close()
    assert set(proxy.asked) == {f"CONNECT {training.parameter_server_url}"}
