"""Trainings whose actions inference servers choose, and what is left of one when a server dies."""

import re
import signal
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from operators import figures, is_ready
from processes import SMALL_DA3C, SMALL_PPO, Process, Training, free_port, wait_for
from worker_modes import SHARED

from relaax.parameters import Bridge

pytestmark = [pytest.mark.integration, SHARED]


class Inferred:
    """A training with inference servers, a parameter server and a learner."""

    def __init__(self, training: Training, servers: int, **algorithm) -> None:
        self.training = training
        self.urls = [f"127.0.0.1:{free_port()}" for _ in range(servers)]
        #: Where the parameter server answers operators, and each inference server.
        self.operators = [f"127.0.0.1:{free_port()}" for _ in range(1 + servers)]
        training.configure(
            {**SMALL_PPO, **algorithm},
            parameter_server={"http-bind": self.operators[0]},
            rlx_server={"inference-servers": self.urls},
        )
        training.start_parameter_server()
        self.learner = training.start_learner()
        self.servers = [self.start_server(url) for url in self.urls]

    def start_server(self, url: str) -> Process:
        operators = self.operators[1 + self.urls.index(url)]
        places = ["--bind", url, "--parameter-server", self.training.parameter_server_url]
        process = self.training.start_command(
            "relaax-inference-server", *places, "--http-bind", operators
        )
        process.says("choosing at ")
        return process

    def wait_for_steps(self, more: int) -> None:
        """Wait until so many more steps are counted than now."""
        with closing(Bridge(self.training.parameter_server_url)) as bridge:
            target = bridge.pull().global_t + more
            wait_for(lambda: bridge.pull().global_t > target, f"{more} more steps")


def has_tensorflow(process: Process) -> bool:
    """Whether a process, or one that it has started, has loaded TensorFlow's library."""
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    return any("tensorflow" in Path(f"/proc/{each.pid}/maps").read_text() for each in family)


def test_each_step_is_learnt_from_with_the_version_that_a_server_has_chosen_with(
    training: Training, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PYTHONHASHSEED", "1")  # programs are started, and no forks with TensorFlow
    # A rollout of an older policy, or of one of no version, would be dropped.
    parts = Inferred(training, servers=1, max_global_step=3000, max_policy_lag=1)
    rlx_server = training.start_rlx_server()
    training.start_environments(4, "--attempts", "2")
    parts.wait_for_steps(500)
    assert not has_tensorflow(rlx_server)
    assert has_tensorflow(parts.servers[0])
    assert [process.wait() for process in training.processes] == [0] * 5
    said = r"stopped after ([\d,]+) steps of the learner; ([\d,]+) steps of environments"
    batches, steps = (
        int(number.replace(",", "")) for number in re.findall(said, parts.learner.output())[0]
    )
    # Of each environment less than a rollout is left, and of all less than a batch; but where that
    # waits, all that a worker has queued may still come at once.
    assert steps - 4 * 16 - 64 - 256 <= batches * 64 <= steps


def test_a_training_goes_on_when_one_of_two_servers_is_killed_and_comes_back(training: Training):
    parts = Inferred(training, servers=2)
    rlx_server = training.start_rlx_server()
    environments = training.start_environments(4, "--attempts", "1")
    parts.wait_for_steps(300)
    for number, url in enumerate(parts.urls):  # the workers ask one of them, whichever it is
        parts.servers[number].signal(signal.SIGKILL)
        parts.wait_for_steps(300)
        parts.servers[number] = parts.start_server(url)
    parts.wait_for_steps(300)
    assert environments.is_running()
    assert "the worker ends" not in rlx_server.output()


def test_an_actor_without_a_policy_trains_and_evaluates(training: Training):
    parts = Inferred(training, servers=1)
    servers = ["--inference-servers", *parts.urls]
    port = free_port(run=2)  # the second actor's is the next one
    training.start_actors(2, *servers, "--http-bind", f"127.0.0.1:{port}")
    parts.wait_for_steps(300)
    parts_of_a_step = ("queue", "inference", "network", "environment")
    names = [("relaax_scalar", f"latency/{part}") for part in parts_of_a_step]
    wait_for(lambda: set(names) <= figures(parts.operators[0]).keys(), "the parts of a step")
    found = figures(parts.operators[0])
    assert min(found[name] for name in names) >= 0
    for url in (f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}"):
        wait_for(lambda url=url: is_ready(url), "an actor")
        own = figures(url)
        assert own["relaax_steps_total",] > own["relaax_episodes_total",] >= 0
        for part in ("queue_wait", "inference", "network", "environment"):
            assert own[f"relaax_{part}_seconds_count", "training"] > 0
    counted = figures(parts.operators[1])
    assert counted["relaax_batch_size_sum",] >= counted["relaax_queue_wait_seconds_count",] > 0
    assert counted["relaax_inference_seconds_count",] > 0
    mode = ["--mode", "eval_deterministic", *servers]
    url = f"127.0.0.1:{free_port()}"
    training.start_actors(1, *mode, "--http-bind", url)
    wait_for(lambda: is_ready(url), "an evaluating actor")
    wait_for(lambda: figures(url).get(("relaax_network_seconds_count", "training")), "its choices")
    assert training.start_actors(1, *mode, "--episodes", "2").wait() == 0


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("relaax-rlx-server", ["--inference-servers", "localhost:1"]),
        ("relaax-inference-server", []),
    ],
)
def test_an_algorithm_whose_workers_learn_is_refused_by_name(
    training: Training, command: str, flags: list[str]
):
    training.configure(SMALL_DA3C)
    process = training.start_command(command, *flags)
    assert process.wait() == 2
    assert re.search(r"error: algorithm \S+da3c", process.output())


def test_a_server_that_is_killed_and_comes_back_at_another_port_is_found_by_its_name(
    training: Training,
):
    name = f"names://{training.parameter_server_url}/trial/streams/default"
    training.configure(SMALL_PPO, rlx_server={"inference-servers": name})
    training.start_parameter_server()
    training.start_learner()
    places = ["--parameter-server", training.parameter_server_url, "--name", name]

    def start_server() -> tuple[Process, str]:
        """Start a server at a port that the system chooses, and return that."""
        server = training.start_command("relaax-inference-server", "--bind", "127.0.0.1:0", *places)
        return server, server.says(r"choosing at 127\.0\.0\.1:(\d+)")[1]

    server, port = start_server()
    rlx_server = training.start_rlx_server()
    environments = training.start_environments(4, "--attempts", "1")
    with closing(Bridge(training.parameter_server_url)) as bridge:
        wait_for(lambda: bridge.pull().global_t > 200, "steps")
        server.signal(signal.SIGKILL)
        _, other_port = start_server()
        assert other_port != port
        target = bridge.pull().global_t + 200
        wait_for(lambda: bridge.pull().global_t > target, "steps by the other server")
    assert environments.is_running()
    assert "the worker ends" not in rlx_server.output()
