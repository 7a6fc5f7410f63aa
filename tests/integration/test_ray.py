"""``relaax-train --on ray``: the processes of a Procfile on a real cluster of three raylets."""

import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from processes import COMMANDS, FAST_DA3C, MARK, SMALL_DA3C, Process, Training, wait_for
from ray.cluster_utils import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

#: A cluster notices after ten seconds or more that a machine is gone, and processes start twice.
DEADLINE_S = 240.0

#: A machine for servers has memory to give away; those for environments have what is called a GPU.
SERVERS = {"num_cpus": 2, "memory": 4 * 2**30}
NEEDS = ("--memory", "ps=1,rlx=1", "--gpus", "env=1")


@dataclass
class RayTraining:
    """A training in a directory of its own, and a cluster; two machines have room for ``env``."""

    training: Training
    cluster: Cluster
    #: With room for two environments, and for one.
    large: Any
    small: Any

    def start(self, *flags: str) -> Process:
        """Start the Procfile."""
        lines = {
            "ps": f"exec relaax-parameter-server --config {self.training.yaml}",
            "rlx": f"exec relaax-rlx-server --config {self.training.yaml}",
            "env": f"exec {sys.executable} -m relaax.client.gymnasium_runner --env CartPole-v1"
            f" --count 4 --per-connection 4 --seed $RELAAX_COPY"
            f" --rlx-server {self.training.rlx_server_url}",
        }
        path = self.training.directory / "Procfile"
        path.write_text("".join(f"{name}: {line}\n" for name, line in lines.items()))
        on = f"ray={self.cluster.address}"
        program = str(COMMANDS / "relaax-train")
        return self.training.start("relaax-train", [program, str(path), "--on", on, *NEEDS, *flags])


@pytest.fixture(name="on_ray")
def _on_ray(training: Training, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayTraining]:
    monkeypatch.setenv(MARK, str(training.directory))  # so that what is left of a cluster is found
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(initialize_head=True, head_node_args={**SERVERS, "include_dashboard": False})
    try:
        large = cluster.add_node(num_cpus=2, num_gpus=2, memory=2**20)
        small = cluster.add_node(num_cpus=1, num_gpus=1, memory=2**20)
        cluster.wait_for_nodes()
        training.workers = 1
        training.access = {"insecure": True}
        yield RayTraining(training, cluster, large, small)
    finally:
        training.close()
        cluster.shutdown()
    wait_for(lambda: not training.survivors(), "the end of what was saving")


def returns(train: Process) -> list[float]:
    """The mean returns that the progress has shown."""
    return [float(shown) for shown in re.findall(r"\| return ([\d.]+) \(", train.output())]


def test_cartpole_is_trained_though_a_machine_with_environments_dies(on_ray: RayTraining):
    on_ray.training.configure(FAST_DA3C)
    train = on_ray.start("--concurrency", "env=2")
    train.says(r"training: step .* \| 8 environments on 2 connections", DEADLINE_S)
    on_ray.cluster.remove_node(on_ray.small, allow_graceful=False)  # its raylet gets SIGKILL
    gone = train.says(r"(env\.[12]) .*its machine, \S+, .*: it starts again", DEADLINE_S)[1]
    wait_for(
        lambda: len(re.findall(rf"{gone} started", train.output())) == 2,
        "its next start",
        DEADLINE_S,
    )
    train.says(rf"(?s)it starts again.*{gone} .*connected 4 of 4", DEADLINE_S)
    assert returns(train)[0] < 100
    wait_for(lambda: returns(train)[-1] > 200, "a mean return of 200", DEADLINE_S)
    assert len(re.findall(r"(?:ps|rlx) started", train.output())) == 2  # once each
    train.signal(signal.SIGTERM)
    assert train.wait(DEADLINE_S) == 143
    assert "Traceback" not in train.output()


def test_servers_go_on_from_the_checkpoint_on_another_machine(on_ray: RayTraining):
    """All that has to do with them finds them, at whichever address they are now."""
    on_ray.training.configure(SMALL_DA3C, {"checkpoint-interval": 1.0})
    room = {"num_cpus": 2, "memory": 16 * 2**30}
    own = on_ray.cluster.add_node(**room)
    train = on_ray.start("--memory", "ps=6,rlx=6")
    train.says(r"training: step [1-9].* [2-9] checkpoints", DEADLINE_S)
    on_ray.cluster.remove_node(own, allow_graceful=False)
    for name in ("ps", "rlx"):
        train.says(rf"{name} .*its machine, \S+, .*: it starts again", DEADLINE_S)
    on_ray.cluster.add_node(**room)  # there was no room for them before
    train.says(r"(?s)it starts again.*ps .*global step is [1-9]", DEADLINE_S)
    train.says(r"(?s)it starts again.*training: step .* 4 environments on 1 connection", DEADLINE_S)


def test_two_rlx_servers_serve_until_the_training_ends_with_status_zero(on_ray: RayTraining):
    # Long enough for the second server to start while the first one's environments play.
    on_ray.training.configure({**SMALL_DA3C, "max_global_step": 100_000})
    train = on_ray.start(
        "--concurrency", "rlx=2,env=3", "--gpus", "env=0", "--cpus", "rlx=0.5,env=0.1"
    )
    ports = {
        train.says(rf"{name} .*serving at \S+:(\d+)", DEADLINE_S)[1] for name in ("rlx.1", "rlx.2")
    }
    assert len(ports) == 2
    assert train.wait(DEADLINE_S) == 0
    served = re.findall(r"(rlx\.\d) .* serves ", train.output())
    assert [served.count(name) for name in ("rlx.1", "rlx.2")] == [2, 1]


def test_ctrl_c_saves_and_stops_everything(on_ray: RayTraining):
    on_ray.training.configure(SMALL_DA3C)
    train = on_ray.start()
    train.says("training: step [1-9]", DEADLINE_S)
    train.signal(signal.SIGINT)
    assert train.wait(DEADLINE_S) == 130
    assert "stopped by a signal: global step" in train.output()
    assert list(on_ray.training.checkpoints.glob("cp-*.safetensors"))


def test_a_killed_launcher_leaves_nothing_running(on_ray: RayTraining):
    on_ray.training.configure(SMALL_DA3C)
    train = on_ray.start()
    train.says("training: step [1-9]", DEADLINE_S)
    pid = int(re.search(r"ps started \(pid=(\d+) at ", train.output())[1])
    train.kill()
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the end of the parameter server", 60)
    assert list(on_ray.training.checkpoints.glob("cp-*.safetensors"))
