"""A parameter server in several processes, each of which holds a slice of the parameters."""

import re
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import failpoints
import numpy as np
import pytest
from operators import figure
from processes import REPOSITORY, SMALL_DA3C, Training, free_port, repeated, wait_for

from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.parameters import stub
from relaax.parameters.sharded import ShardedBridge

pytestmark = pytest.mark.integration

SMALL_PUBLISHED = {
    "path": str(REPOSITORY / "algorithms" / "dqn"), "state_size": [4], "action_size": 2,
}  # fmt: skip


class Shards:
    """The processes of the shards of a training."""

    def __init__(self, training: Training, count: int, algorithm=None, flags=(), **options):
        self.training = training
        self.urls = [f"127.0.0.1:{free_port()}" for _ in range(count)]
        self._algorithm = {**SMALL_DA3C, **(algorithm or {})}
        self._options = {"shards": self.urls, "checkpoint-interval": 1.0, **options}
        self.configure()
        self.processes = [self.start(1, *flags)]
        self.processes += [self.start(index) for index in range(2, count + 1)]

    def configure(self) -> None:
        """Write the YAML file."""
        self.training.configure(self._algorithm, self._options, {"parameter-server": self.urls})

    def start(self, index: int, *flags: str):
        count = len(self.urls)
        return self.training.start_command(
            "relaax-parameter-server", "--shard", f"{index}/{count}", "--bind",
            self.urls[index - 1], *flags,
        )  # fmt: skip

    def step(self) -> int:
        bridge = ShardedBridge(self.urls)
        try:
            return bridge.get_values().global_t
        finally:
            bridge.close()

    def steps_saved(self) -> list[int]:
        return sorted(int(path.stem[3:]) for path in self.training.checkpoints.glob("cp-*.json"))


def failing_shards(training: Training, fault: str, interval_s: float) -> Shards:
    """Two shards with a failpoint; one that is started later has none."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(failpoints.VARIABLE, fault)
        return Shards(training, 2, **{"checkpoint-interval": interval_s})


def test_a_training_with_three_shards_ends_as_any_other(training: Training):
    shards = Shards(training, 3, {"max_global_step": 600})
    training.start_rlx_server()
    training.start_environments(2, "--attempts", "2", is_paced=True)
    assert [process.wait() for process in training.processes] == [0] * 5
    (step,) = {shards.steps_saved()[-1]}
    assert step >= 600
    folders = [training.checkpoints] + [
        training.checkpoints / f"shard-{index}-of-3" for index in (2, 3)
    ]
    parts = [CheckpointSaver(DirectoryStore(folder)).restore_latest() for folder in folders]
    assert [part.global_t for part in parts] == [step] * 3
    assert len({part.tensors["set"].tobytes() for part in parts}) == 1
    assert "WARNING" not in "".join(process.output() for process in shards.processes)


def test_a_shard_that_is_killed_comes_back_from_its_last_part_and_the_others_go_on(
    training: Training,
):
    for_operators = f"127.0.0.1:{free_port()}"
    shards = Shards(training, 2, flags=["--http-bind", for_operators], **{"checkpoint-interval": 3})
    training.start_rlx_server()
    training.start_environments(2, is_paced=True)
    wait_for(lambda: [step for step in shards.steps_saved() if step > 0], "a checkpoint")
    # Updates that are in no checkpoint, longer than the first shard takes from look to look.
    wait_for(lambda: shards.step() > shards.steps_saved()[-1] + 200, "more steps")
    reached = shards.step()
    shards.processes[1].kill()
    shards.start(2)
    lost = shards.processes[0].says(
        rf"{shards.urls[1]} started again and went back from global step (\d+) to (\d+): at "
    )
    assert int(lost[1]) > int(lost[2]) > 0
    wait_for(lambda: shards.step() > reached + 200, "training after the kill")
    counted = figure(for_operators, "relaax_shard_steps_lost_total")
    assert counted == int(lost[1]) - int(lost[2])
    saved = shards.steps_saved()[-1]
    wait_for(lambda: shards.steps_saved()[-1] > saved, "a save of all")
    assert "restored global step" not in shards.processes[0].output()


def test_the_first_shard_that_is_killed_goes_on_with_the_others(training: Training):
    shards = Shards(training, 2)
    training.start_rlx_server()
    training.start_environments(2, is_paced=True)
    wait_for(lambda: [step for step in shards.steps_saved() if step > 0], "a checkpoint")
    shards.processes[0].kill()
    again = shards.start(1)
    step = int(again.says(r"restored global step ([\d,]+) from")[1].replace(",", ""))
    wait_for(lambda: shards.step() > step + 200, "training after the kill")


def test_steps_that_all_save_and_the_first_has_not_answered_when_it_is_killed_count_once(
    training: Training, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stub, "FIRST_WAIT_S", 60.0)  # no repetition before the kill
    shards = failing_shards(training, "bridge.counted=wait:600@2", interval_s=0.1)
    with closing(ShardedBridge(shards.urls)) as worker:
        assert worker.increment_global_t(10) == 10
        with ThreadPoolExecutor(1) as thread:
            second = thread.submit(worker.increment_global_t, 10)
            wait_for(lambda: shards.steps_saved()[-1:] == [20], "a checkpoint")
            shards.processes[0].kill()
            shards.start(1).says("global step is 20\n")
            assert second.result() == 20
        assert worker.increment_global_t(10) == 30


@pytest.mark.parametrize("index", [1, 2])
def test_no_step_is_lost_while_a_shard_that_is_stopped_saves(training: Training, index):
    shards = failing_shards(training, "shards.set=wait:1.5", interval_s=600)
    with (
        closing(ShardedBridge(shards.urls)) as worker,
        closing(ShardedBridge(shards.urls)) as another,
        repeated(worker.increment_global_t) as counted,
    ):
        wait_for(lambda: another.get_values().global_t > 10, "steps at shards that all answer")
        shards.processes[index - 1].signal(signal.SIGTERM)
        assert shards.processes[index - 1].wait() == 0
        (saved,) = wait_for(shards.steps_saved, "the set")
        shards.start(index)
        wait_for(lambda: another.get_values().global_t > saved, "steps behind those saved")
        assert counted() == another.increment_global_t(0) > saved > 10


def test_a_shard_ends_where_the_first_one_does_not_come_back(training: Training):
    shards = Shards(training, 2)
    assert shards.step() == 0  # all of them answer
    shards.processes[1].kill()
    second = shards.start(2, "--give-up", "1")  # not before: the first one may start slowly
    assert shards.step() == 0
    shards.processes[0].kill()
    assert second.wait() == 1
    second.says(r"the first shard was away for 1 s \(--give-up\)")


def test_all_are_stopped_and_go_on_where_they_were(training: Training):
    shards = Shards(training, 2)
    rlx_server = training.start_rlx_server()
    environments = training.start_environments(2, is_paced=True)
    wait_for(lambda: [step for step in shards.steps_saved() if step > 0], "a checkpoint")
    for process in (environments, rlx_server):
        process.signal(signal.SIGTERM)
        process.wait()
    bridge = ShardedBridge(shards.urls)
    before = bridge.get_values()
    bridge.close()
    for process in shards.processes:
        process.signal(signal.SIGTERM)
    assert [process.wait() for process in shards.processes] == [0, 0]
    for index in (1, 2):
        shards.start(index)
    bridge = ShardedBridge(shards.urls)
    after = bridge.get_values()
    bridge.close()
    assert after.global_t == before.global_t
    np.testing.assert_array_equal(after.vector, before.vector)


def test_checkpoints_of_fewer_shards_and_of_more_are_refused(training: Training):
    """One of another number of shards by that number, and one without a part by its shard."""
    shards = Shards(training, 2)
    assert shards.step() == 0  # all of them answer
    with closing(ShardedBridge(shards.urls)) as worker:
        assert worker.increment_global_t(10) == 10
    for process in shards.processes:
        process.signal(signal.SIGTERM)
    assert [process.wait() for process in shards.processes] == [0, 0]
    training.configure(SMALL_DA3C)
    alone = training.start_command("relaax-parameter-server")
    assert alone.wait() == 2
    assert "shard is '1/2' in the checkpoint and absent here" in alone.output()
    shards.configure()
    parts = training.checkpoints / "shard-2-of-2"
    for path in parts.iterdir():
        path.unlink()
    shards.start(1)
    second = shards.start(2)
    assert second.wait() == 2
    said = second.output()
    assert re.search(r"error: the checkpoint of step [\d,]+ lacks the part of shard 2/2: ", said)
    assert f"no checkpoint of that step is in {parts}; there are: none" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("fault", "victim"), [("shards.part=kill@2", 2), ("shards.set=kill@2", 1)])
def test_a_shard_that_is_killed_while_all_save_goes_on_from_the_last_whole_set(
    training: Training, fault, victim
):
    shards = failing_shards(training, fault, interval_s=0.2)
    killed = shards.processes[victim - 1]
    with closing(ShardedBridge(shards.urls)) as worker:
        values = worker.get_values()
        first = values = worker.synchronize(np.ones_like(values.vector), 10, values.version)
        wait_for(lambda: shards.steps_saved() == [10], "a checkpoint")
        worker.synchronize(np.ones_like(values.vector), 10, values.version)
        assert killed.wait() == -signal.SIGKILL
        for process in shards.processes:
            process.kill()
        assert shards.steps_saved() == [10]
        for index in (1, 2):
            shards.start(index)
        back = worker.get_values()
        assert back.global_t == 10
        np.testing.assert_array_equal(back.vector, first.vector)
        worker.synchronize(np.ones_like(back.vector), 10, back.version)
        wait_for(lambda: shards.steps_saved()[-1] == 20, "a checkpoint of all")


@pytest.mark.parametrize(
    ("algorithm", "flags", "reason"),
    [
        (SMALL_DA3C, ["--shard", "3/2"], "must be I/N"),
        (SMALL_DA3C, ["--shard", "1/2"], "needs --shards"),
        (SMALL_DA3C, ["--shards", "localhost:1", "localhost:2"], "which of them this is"),
        (
            SMALL_DA3C,
            ["--shard", "1/2", "--shards", "localhost:1"],
            "needs 2 addresses in --shards, not 1",
        ),
        (
            SMALL_PUBLISHED,
            ["--shard", "1/2", "--shards", "localhost:1", "localhost:2"],
            "only parameters that single gradients move have shards",
        ),
    ],
)
def test_a_mistake_is_one_line(training: Training, algorithm, flags, reason):
    training.configure(algorithm)
    process = training.start_command("relaax-parameter-server", *flags)
    assert process.wait() == 2
    (line,) = [line for line in process.output().splitlines() if "error" in line]
    assert reason in line
