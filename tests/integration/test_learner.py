"""A training whose learner is a process of its own: replay, published policies, restarts."""

import re
import signal
from pathlib import Path

import pytest
from processes import SMALL_SAC, Training, wait_for
from worker_modes import IN_BOTH_MODES, SHARED

from relaax.parameters import Bridge
from relaax.replay.client.stub import ReplayStub

pytestmark = pytest.mark.integration


@SHARED
def test_when_the_steps_are_done_everybody_ends_with_status_zero(training: Training):
    training.configure({**SMALL_SAC, "max_global_step": 800})
    training.start_parameter_server()
    learner = training.start_learner()
    training.start_rlx_server()
    training.start_environments(2, "--attempts", "2", env="Pendulum-v1", is_paced=True)
    assert [process.wait() for process in training.processes] == [0, 0, 0, 0]
    said = r"stopped after ([\d,]+) steps of the learner; ([\d,]+) steps of environments"
    updates, steps = (
        int(number.replace(",", "")) for number in re.findall(said, learner.output())[0]
    )
    # Two workers may each have been let in with a full queue, 256 steps, at last.
    assert 0.25 * (steps - 2 * 256) - 20 <= updates <= 0.25 * steps + 20
    (manifest,) = training.checkpoints.glob("cp-*.json")
    assert int(manifest.stem.removeprefix("cp-")) >= 800
    assert list((training.directory / "learner").glob("cp-*.json"))


@IN_BOTH_MODES
def test_what_is_learnt_is_published_and_every_step_is_stored_once(
    training: Training, bridge: Bridge
):
    training.configure(SMALL_SAC)
    training.start_parameter_server()
    training.start_learner()
    training.start_rlx_server()
    environments = training.start_environments(2, env="Pendulum-v1", is_paced=True)
    wait_for(lambda: bridge.pull().info, "a publication")
    first = bridge.pull()
    wait_for(lambda: bridge.pull().info.hash != first.info.hash, "other parameters")
    replay = ReplayStub(training.learner_url)
    wait_for(lambda: replay.stats()["steps stored"] > 500, "five hundred steps")
    environments.kill_family()
    wait_for(lambda: bridge.add(0) == replay.stats()["actions stored"], "each step counted once")
    replay.close()


@SHARED
def test_a_learner_that_is_killed_goes_on_from_its_checkpoint(training: Training, bridge: Bridge):
    training.configure(SMALL_SAC, learner={"checkpoint-interval": 1.0})
    training.start_parameter_server()
    learner = training.start_learner()
    training.start_rlx_server()
    training.start_environments(2, env="Pendulum-v1", is_paced=True)
    kept = training.directory / "learner"
    for place in (kept, kept / "replay"):
        wait_for(lambda place=place: list(place.glob("cp-[1-9]*.json")), f"a checkpoint in {place}")
    learner.kill()
    before = bridge.pull().info.iteration
    again = training.start_learner()
    restored = int(again.says(r"restored step ([\d,]+) from")[1].replace(",", ""))
    steps = int(again.says(r"restored ([\d,]+) steps from")[1].replace(",", ""))
    assert steps > 0
    known = max(before, restored)  # a checkpoint may be newer than what was published
    wait_for(lambda: bridge.pull().info.iteration > known, "more steps of learning")
    again.signal(signal.SIGTERM)
    assert again.wait() == 0
    counted = r"stopped after ([\d,]+) steps of the learner, ([\d,]+) of them since this start; "
    total, new = (int(number.replace(",", "")) for number in re.findall(counted, again.output())[0])
    assert 0 < new < total


@SHARED
def test_a_learner_that_has_lost_its_checkpoints_does_not_replace_what_was_learnt(
    training: Training, bridge: Bridge
):
    training.configure(SMALL_SAC, learner={"checkpoint-interval": 1.0})
    parameter_server = training.start_parameter_server()
    learner = training.start_learner()
    training.start_rlx_server()
    training.start_environments(2, env="Pendulum-v1", is_paced=True)
    kept = training.directory / "learner"
    wait_for(lambda: list(kept.glob("cp-[1-9]*.json")), "a checkpoint of the learner")
    learner.kill()
    kept.rename(kept.with_name("lost"))
    trained = bridge.pull()
    for again in (False, True):
        refused = training.start_command("relaax-learner")
        assert refused.wait() == 2
        assert "does not continue step" in refused.output()
        assert bridge.pull().info.hash == trained.info.hash
        if not again:  # the same of values that come from a checkpoint
            parameter_server.signal(signal.SIGTERM)
            assert parameter_server.wait() == 0
            training.start_parameter_server()
    training.start_learner("--start-afresh")
    wait_for(lambda: bridge.pull().info.hash != trained.info.hash, "other values")


@SHARED
def test_what_a_killed_learner_had_stored_is_counted(training: Training, bridge: Bridge):
    training.configure(SMALL_SAC, learner={"checkpoint-interval": 1.0, "save-replay": False})
    training.start_parameter_server()
    learner = training.start_learner()
    training.start_rlx_server()
    environments = training.start_environments(2, env="Pendulum-v1", is_paced=True)
    wait_for(lambda: bridge.add(0) > 100, "a hundred steps")
    environments.kill_family()
    learner.kill()
    counted = bridge.add(0)
    again = training.start_learner()
    lost = again.says(r"the (\d+) steps of before this start are not stored any more")
    assert int(lost[1]) == counted > 0
    replay = ReplayStub(training.learner_url)
    assert replay.stats()["steps lost"] == counted
    replay.close()


@IN_BOTH_MODES
def test_a_worker_that_is_stopped_waits_for_no_learner(training: Training):
    """It has waited for room when the signal comes, and still says goodbye."""
    training.configure(SMALL_SAC)
    training.start_parameter_server()
    learner = training.start_learner()
    rlx_server = training.start_rlx_server()
    training.start_environments(2, env="Pendulum-v1", is_paced=True)
    replay = ReplayStub(training.learner_url)
    wait_for(lambda: replay.stats()["steps stored"] > 100, "a hundred steps")
    replay.close()
    learner.kill()
    rlx_server.says("waiting: the replay at")
    rlx_server.signal(signal.SIGTERM)
    assert rlx_server.wait() == 0
    assert "steps were dropped" in rlx_server.output()
    assert "did not stop within" not in rlx_server.output()


@SHARED
def test_a_learner_that_is_stopped_while_it_starts_ends_without_the_others(training: Training):
    training.configure(SMALL_SAC)
    learner = training.start_command("relaax-learner")
    wait_for(lambda: handles(learner.pid, signal.SIGTERM), "a handler of SIGTERM")
    learner.signal(signal.SIGTERM)
    assert learner.wait() == 0
    assert "stopped before it began" in learner.output()
    assert "waiting" not in learner.output()


def handles(process: int, number: signal.Signals) -> bool:
    """Return whether a process handles a signal itself."""
    status = Path(f"/proc/{process}/status").read_text()
    caught = int(re.findall(r"SigCgt:\s+(\w+)", status)[0], 16)
    return bool(caught >> (number - 1) & 1)


@SHARED
def test_learning_goes_on_while_the_parameter_server_is_away(training: Training, bridge: Bridge):
    training.configure(SMALL_SAC, {"checkpoint-interval": 1.0})
    parameter_server = training.start_parameter_server()
    training.start_learner()
    training.start_rlx_server()
    training.start_environments(2, env="Pendulum-v1", is_paced=True)
    replay = ReplayStub(training.learner_url)
    wait_for(lambda: list(training.checkpoints.glob("cp-*.json")), "a checkpoint")
    wait_for(lambda: replay.stats()["actions stored"] > 100, "a hundred steps")
    parameter_server.kill()
    drawn = replay.stats()["all/drawn"]
    wait_for(lambda: replay.stats()["all/drawn"] > drawn + 100 * 16, "a hundred updates more")
    stored = replay.stats()["actions stored"]
    training.start_parameter_server()
    before = bridge.pull().info.iteration
    wait_for(lambda: bridge.pull().info.iteration > before, "a newer publication")
    wait_for(lambda: bridge.add(0) > stored, "more steps than there were")
    replay.close()
