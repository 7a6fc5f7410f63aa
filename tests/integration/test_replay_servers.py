"""A training whose steps are stored by replay servers, and what is left of it when parts die."""

import os
import re
import shutil
import signal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from counting_environment import SCALE
from event_scalars import scalars
from processes import REPOSITORY, SMALL_SAC, Process, Training, free_port, wait_for
from safetensors.numpy import load_file
from worker_modes import SEVERAL

from relaax.errors import BridgeError
from relaax.parameters import Bridge
from relaax.replay.client.stub import ReplayStub
from relaax.replay.client.writer import ReplayWriter
from relaax.replay.schema import Schema
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import START

pytestmark = [pytest.mark.integration, SEVERAL]

COUNTING = "counting_environment:Counting-v0"


class Sharded:
    """A training with two replay servers that save what they hold every half a second."""

    def __init__(self, training: Training, bridge: Bridge, **algorithm) -> None:
        self.training, self.bridge = training, bridge
        self.urls = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        self.saved = training.directory / "replay"
        training.configure(
            {**SMALL_SAC, **algorithm},
            {"checkpoint-interval": 0.5},
            learner={"replay-servers": self.urls, "checkpoint-interval": 0.5},
            replay_server={"checkpoint-dir": str(self.saved), "checkpoint-interval": 0.5},
        )
        self.parameter_server = training.start_parameter_server()
        self.servers = [training.start_replay_server(url) for url in self.urls]
        self.learner = training.start_learner()
        self.rlx_server = training.start_rlx_server()

    def stats(self, number: int) -> dict[str, float]:
        stub = ReplayStub(self.urls[number])
        try:
            return stub.stats()
        except BridgeError:  # it has just been started
            return {}
        finally:
            stub.close()

    def wait_for_steps(self, number: int, more: int = 100) -> None:
        """Wait until a server has stored ``more`` steps than now."""
        target = self.stats(number)["steps stored"] + more
        wait_for(lambda: self.stats(number).get("steps stored", 0) > target, "more stored steps")

    def wait_for_learning(self, more: int = 20) -> None:
        """Wait until what is published is of so many steps of the learner more."""
        target = self.iteration() + more
        wait_for(lambda: self.iteration() > target, "more steps of the learner")

    def iteration(self) -> int:
        info = self.bridge.pull().info
        return info.iteration if info else 0

    def save_of(self, number: int) -> Path:
        """Where a server saves."""
        return self.saved / self.urls[number].replace(":", "-")

    def manifests(self, number: int) -> list[Path]:
        return list(self.save_of(number).glob("cp-*.json"))


def stop(process: Process) -> None:
    process.signal(signal.SIGTERM)
    assert process.wait() == 0


def steps_by_slot(path: Path) -> list[np.ndarray]:
    """The saved steps of each slot: (environment, episode, step, flags) int64 [N, 4], in order."""
    saved = load_file(path)
    order = np.argsort(saved["storage/serials"])
    counts = np.rint(saved["storage/column/observation"][order] * SCALE).astype(np.int64)
    rows = np.column_stack([counts, saved["storage/flags"][order]])
    slots = saved["storage/slots"][order]
    return [rows[slots == slot] for slot in np.unique(slots)]


def require_in_order(steps: np.ndarray) -> None:
    """Within a slot one environment counts on, one step at a time, or begins another episode."""
    assert len(np.unique(steps[:, 0])) == 1
    for (_, episode, step, _), (_, next_episode, next_step, flags) in pairwise(steps.tolist()):
        if flags & START:
            assert (next_episode > episode, next_step) == (True, 0)
        else:
            assert (next_episode, next_step) == (episode, step + 1)


def require_each_step_once(saved: Path) -> int:
    """All slots of all servers are in order, and no step is in two places: return how many."""
    slots = [steps for path in saved.glob("*/*.safetensors") for steps in steps_by_slot(path)]
    for steps in slots:
        require_in_order(steps)
    stored = np.concatenate(slots)[:, :3]
    assert len(np.unique(stored, axis=0)) == len(stored)
    return len(stored)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_stopped_saves_all_that_it_has_acknowledged(
    training: Training, number: signal.Signals
):
    url = f"127.0.0.1:{free_port()}"
    directory = training.directory / "replay"
    algorithm = {**SMALL_SAC, "updates_per_step": None}  # there is no learner to wait for
    training.configure(algorithm, replay_server={"checkpoint-dir": str(directory)})
    server = training.start_replay_server(url)
    stub = ReplayStub(url)
    schema, _ = stub.describe()
    writer = ReplayWriter(ReplayStub(url), schema)
    put(writer, schema, 0, 100)
    wait_for(lambda: writer.waiting == 0, "an acknowledgement")
    server.signal(number)
    assert server.wait() == 0
    assert "stopped; 100 steps of environments were delivered" in server.output()
    again = training.start_replay_server(url)
    assert "restored 100 steps from" in again.output()
    put(writer, schema, 100, 50)
    wait_for(lambda: writer.waiting == 0, "an acknowledgement")
    stats = stub.stats()
    assert (stats["steps"], stats["steps lost"], stats["writers"]) == (150, 0, 1)
    writer.close()
    assert stub.stats()["writers"] == 0
    stub.close()


def put(writer: ReplayWriter, schema: Schema, first: int, count: int) -> None:
    """Write steps of environment 0, of which one with the number 0 begins its episode."""
    flags = np.where(np.arange(first, first + count) == 0, START, 0).astype(np.uint8)
    writer.put(StepBatch(np.zeros(count, np.int64), flags, schema.rows(count)))


def test_a_server_of_other_steps_is_refused_by_the_name_of_the_column(training: Training):
    url = f"127.0.0.1:{free_port()}"
    training.configure({**SMALL_SAC, "state_size": [4]}, learner={"replay-servers": [url]})
    training.start_replay_server(url)
    training.configure(SMALL_SAC, learner={"replay-servers": [url]})
    training.start_parameter_server()
    learner = training.start_learner()
    assert learner.wait() == 2
    assert re.search(
        rf"error: the replay at {url}: column 'observation' is float32 \[4\], "
        r"and must be float32 \[3\]",
        learner.output(),
    )


def test_an_algorithm_without_a_learner_needs_no_replay_server(training: Training):
    process = training.start_command("relaax-replay-server")
    assert process.wait() == 2
    assert "nothing is stored for it" in process.output()


def test_an_interval_of_an_eviction_that_is_not_asked_for_is_refused(training: Training):
    training.configure(SMALL_SAC)
    process = training.start_command("relaax-replay-server", "--evict-interval", "5")
    assert process.wait() == 2
    assert "--evict-interval: without --evict-after nothing is evicted" in process.output()


def test_an_address_that_is_taken_is_refused(training: Training):
    training.configure(SMALL_SAC)
    url = f"127.0.0.1:{free_port()}"
    training.start_replay_server(url)
    second = training.start_command("relaax-replay-server", "--bind", url)
    assert second.wait() == 2
    assert f"--bind: cannot listen at {url}" in second.output()


def test_when_the_steps_are_done_everybody_ends_with_status_zero(
    training: Training, bridge: Bridge
):
    sharded = Sharded(training, bridge, max_global_step=1500)
    training.start_environments(2, "--attempts", "2", env="Pendulum-v1")
    assert [process.wait() for process in training.processes] == [0] * 6
    said = r"stopped after ([\d,]+) steps of the learner; ([\d,]+) steps .* 0 of them were lost"
    updates, steps = (
        int(number.replace(",", "")) for number in re.findall(said, sharded.learner.output())[0]
    )
    # The ratio holds for both servers together; each may be ten updates ahead or behind, and two
    # workers may each have been let in with a full queue, 256 steps, for each of them at last.
    assert 0.25 * (steps - 4 * 256) - 30 <= updates <= 0.25 * steps + 30
    for server in sharded.servers:
        stored = int(re.findall(r"stopped; ([\d,]+) steps", server.output())[0].replace(",", ""))
        assert stored > 500  # each has its share


def test_environments_need_not_wait_for_a_learner_that_does_not_keep_up(training: Training):
    url, metrics = f"127.0.0.1:{free_port()}", training.directory / "metrics"
    training.configure(SMALL_SAC, {"metrics-dir": str(metrics)}, learner={"replay-servers": [url]})
    training.start_parameter_server()
    training.start_replay_server(url)  # it takes no more, since nobody draws
    training.start_rlx_server("--when-full", "drop")
    environments = training.start_environments(2, "--episodes", "20", env="Pendulum-v1")
    assert environments.wait() == 0
    dropped = "actor/steps_dropped"
    wait_for(lambda: sum(count for _, count in scalars(metrics)[dropped]) > 2000, "a count")


def test_whatever_is_killed_training_goes_on_and_no_step_is_stored_twice_or_out_of_order(
    training: Training, bridge: Bridge
):
    sharded = Sharded(training, bridge)
    environments = training.start_environments(4, env=COUNTING)
    sharded.wait_for_steps(0)
    sharded.wait_for_steps(1)
    wait_for(lambda: all(sharded.manifests(number) for number in range(2)), "saved contents")

    stop(sharded.servers[0])
    old_save = shutil.copytree(sharded.save_of(0), training.directory / "old")
    sharded.servers[0] = training.start_replay_server(sharded.urls[0])
    # The ratio lets so many come only where the learner has drawn, and so knows, some of them.
    sharded.wait_for_steps(0, 600)
    sharded.servers[0].kill()
    shutil.rmtree(sharded.save_of(0))
    old_save.rename(sharded.save_of(0))
    sharded.wait_for_steps(1)
    sharded.wait_for_learning()
    sharded.servers[0] = training.start_replay_server(sharded.urls[0])
    assert "restored" in sharded.servers[0].output()
    sharded.learner.says(r"started again: [1-9]\d* steps are lost")
    sharded.wait_for_steps(0)
    sharded.wait_for_learning()

    sharded.learner.kill()
    sharded.learner = training.start_learner()
    sharded.learner.says(r"restored step [\d,]+ from")
    sharded.wait_for_learning()

    sharded.parameter_server.kill()
    sharded.parameter_server = training.start_parameter_server()
    sharded.wait_for_learning()

    victim = sharded.rlx_server.children()[-1]
    os.kill(victim.pid, signal.SIGKILL)
    sharded.rlx_server.says(rf"\(pid {victim.pid}\) was killed by SIGKILL")
    sharded.wait_for_steps(0)
    sharded.wait_for_steps(1)
    sharded.wait_for_learning()

    environments.kill_family()
    stop(sharded.learner)
    for server in sharded.servers:
        stop(server)
    assert require_each_step_once(sharded.saved) > 1000


def test_an_actor_that_is_killed_ends_alone_and_its_steps_stay_in_order(
    training: Training, bridge: Bridge, monkeypatch: pytest.MonkeyPatch
):
    sharded = Sharded(training, bridge)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY / "tests"), prepend=os.pathsep)
    actors = training.start_actors(2, env=COUNTING)  # each delivers to a server of its own
    for number in range(2):
        sharded.wait_for_steps(number)
    victim = actors.children()[-1]
    os.kill(victim.pid, signal.SIGKILL)
    sharded.wait_for_learning()
    others = training.start_actors(2, env=COUNTING)
    for number in range(2):
        sharded.wait_for_steps(number)
    sharded.wait_for_learning()

    for process in (actors, others):
        process.signal(signal.SIGTERM)
    assert (actors.wait(), others.wait()) == (0, 0)
    stop(sharded.learner)
    for server in sharded.servers:
        stop(server)
    assert require_each_step_once(sharded.saved) > 400
