"""Connections that evaluate, with real servers: apart from training, and with scores by version."""

import json
import re
import signal
from contextlib import suppress
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from event_scalars import scalars
from processes import REPOSITORY, SMALL_DA3C, SMALL_SAC, Training, wait_for
from worker_modes import IN_BOTH_MODES, SHARED

from relaax.client import Client, Failure, VectorClient
from relaax.parameters import Bridge

pytestmark = pytest.mark.integration

STATE = np.zeros(4, np.float32)

BY_VERSION = "evaluation/reward_by_version"


def play(client: Client, reward: float, steps: int) -> list[int]:
    """Play an episode that earns ``reward`` in its last step; return its actions."""
    actions = [client.init(STATE)]
    actions += [client.send(0.0, STATE) for _ in range(steps - 1)]
    assert client.reset(reward) == reward
    return actions


def stop(training: Training) -> None:
    """End one process after the other, so that the last metrics find their parameter server."""
    for process in reversed(training.processes):
        if process.is_running():
            process.signal(signal.SIGTERM)
        process.wait()


def with_metrics(training: Training, **section: object) -> None:
    metrics = {"metrics-dir": str(training.directory / "metrics")}
    training.configure({**SMALL_DA3C, **section}, metrics)


@IN_BOTH_MODES
def test_nothing_of_an_evaluation_is_learnt_from_or_counted(training: Training, bridge: Bridge):
    with_metrics(training)
    training.start_parameter_server()
    training.start_rlx_server()
    before = bridge.get_values()
    with Client(training.rlx_server_url, timeout_s=60, evaluate="deterministic") as evaluating:
        for number in range(3):
            play(evaluating, float(number), steps=20)
    after = bridge.get_values()
    assert (after.version, after.global_t) == (before.version, 0)
    np.testing.assert_array_equal(after.vector, before.vector)
    with Client(training.rlx_server_url, timeout_s=60) as learning:
        play(learning, 50.0, steps=20)
        learning.init(STATE)  # the last rollout is learnt from when the next episode begins
        wait_for(lambda: bridge.get_values().global_t == 20, "steps of the training")
    stop(training)
    found = scalars(training.directory / "metrics")
    assert found["evaluation/reward"] == [(0, 0.0), (0, 1.0), (0, 2.0)]
    assert [length for _, length in found["evaluation/length"]] == [20, 20, 20]
    assert [score for _, score in found["episode/reward"]] == [50.0]


@SHARED
def test_the_mode_is_always_the_same_and_samples_are_not(training: Training):
    training.configure({**SMALL_DA3C, "learn": False})
    training.start_parameter_server()
    training.start_rlx_server()
    with Client(training.rlx_server_url, timeout_s=60, evaluate="deterministic") as client:
        assert len(set(play(client, 0.0, steps=60))) == 1
    with Client(training.rlx_server_url, timeout_s=60, evaluate="stochastic") as client:
        assert len(set(play(client, 0.0, steps=60))) == 2


def version_of(bridge: Bridge) -> int:
    return bridge.get_values().version.number


@SHARED
def test_on_a_shared_worker_an_episode_keeps_its_version_while_others_learn(
    training: Training, bridge: Bridge
):
    with_metrics(training, initial_learning_rate=0.01)
    metrics = training.directory / "metrics"
    training.start_parameter_server()
    training.start_rlx_server("--workers", "1")
    with (
        Client(training.rlx_server_url, timeout_s=60) as learning,
        VectorClient(
            training.rlx_server_url, 2, timeout_s=60, evaluate="deterministic"
        ) as evaluating,
    ):
        states = np.zeros((2, 4), np.float32)
        evaluating.init(states)
        learning.init(STATE)
        rounds = 0

        def plays_with_something_learnt() -> bool:
            """Learn, and end an episode: whether one was played with what had been learnt."""
            nonlocal rounds
            before = version_of(bridge)
            for _ in range(40):
                learning.send(1.0, STATE)
            wait_for(lambda: version_of(bridge) > before, "an update")
            # One episode ends and the next one begins; the other one has begun with version 0.
            newest = float(version_of(bridge))
            evaluating.send([0.0, newest], states, terminated=[False, True])
            rounds += 1
            return any(version > 0 for version, _ in scalars(metrics)[BY_VERSION])

        wait_for(plays_with_something_learnt, "an episode of a newer version")
        evaluating.send([7.0, 0.0], states, terminated=[True, False])
        wait_for(lambda: bridge.get_values().global_t == rounds * 40, "all steps of the training")
    stop(training)
    by_version = scalars(metrics)[BY_VERSION]
    assert (0, 7.0) in by_version
    assert len(by_version) == rounds + 1
    for version, newest_when_it_ended in by_version:
        assert version <= newest_when_it_ended


@SHARED
def test_an_algorithm_without_evaluators_refuses_in_words(training: Training):
    template = REPOSITORY / "relaax" / "launcher" / "algorithm_template"
    training.configure({"path": str(template), "action_size": 2, "state_size": 4})
    training.start_parameter_server()
    training.start_rlx_server()
    with (
        Client(training.rlx_server_url, timeout_s=60, evaluate="stochastic") as client,
        pytest.raises(Failure, match="cannot evaluate") as refused,
    ):
        client.init(STATE)
    assert refused.value.is_refusal


@SHARED
def test_the_command_evaluates_records_videos_and_says_what_came_of_it(training: Training):
    with_metrics(training)
    training.start_parameter_server()
    training.start_rlx_server()
    videos = training.directory / "videos"
    environments = training.start_environments(
        2, "--evaluate", "--episodes", "9", "--record-video", str(videos), "--record-every", "2",
        "--max-videos", "2", "--env-kwargs", '{"max_episode_steps": 12}',
    )  # fmt: skip
    assert environments.wait() == 0
    assert re.search(r"return of 9 episodes: mean \d+\.\d\d, standard", environments.output())
    stop(training)
    found = scalars(training.directory / "metrics")
    assert len(found["evaluation/reward"]) == 9
    assert "episode/reward" not in found
    # The first of two environments plays five episodes, 0 to 4: of 0, 2 and 4, two are kept.
    files = sorted(videos.iterdir())
    assert [re.sub(r"\d{8}-\d{6}", "TIME", file.name) for file in files] == [
        "CartPole-v1-TIME-episode-2.mp4",
        "CartPole-v1-TIME-episode-4.mp4",
    ]
    lengths = {length for _, length in found["evaluation/length"]}
    for file in files:
        frames, _ = imageio_ffmpeg.count_frames_and_secs(str(file))
        assert frames - 1 in lengths  # a frame before the first step, and one after each


@SHARED
def test_both_the_parameter_server_and_the_learner_know_which_checkpoint_is_best(
    training: Training,
):
    often = {"checkpoint-interval": 0.5, "checkpoints-to-keep": 2}
    training.configure(SMALL_SAC, often, learner=often)
    training.start_parameter_server()
    training.start_learner()
    training.start_rlx_server("--workers", "1")
    training.start_environments(1, env="Pendulum-v1", is_paced=True)
    places = training.checkpoints, training.directory / "learner"
    with Client(training.rlx_server_url, timeout_s=60, evaluate="deterministic") as client:

        def evaluate(score: float) -> list[dict[str, float]]:
            client.init(np.zeros(3, np.float32))
            client.reset(score)
            return [scores_in(place) for place in places]

        wait_for(lambda: all(100.0 in scores.values() for scores in evaluate(100.0)), "a score")
        best = [min(scores, key=lambda name: -scores[name]) for scores in evaluate(0.0)]
        # Two are kept as the newest ones, and one as the best.
        wait_for(lambda: all(len(scores) > 2 for scores in evaluate(0.0)), "others")
    stop(training)
    for place, name in zip(places, best, strict=True):
        assert name in scores_in(place)
        assert len(list(place.glob("cp-*.safetensors"))) == 3
    again = training.start_command("relaax-parameter-server", "--restore", "best")
    restored = again.says(r"global step is (\d+)").group(1)
    assert f"cp-{restored}.score.json" == best[0]


def scores_in(place: Path) -> dict[str, float]:
    """The scores of the checkpoints in a directory, by the names of their files."""
    found = {}
    for path in place.glob("cp-*.score.json"):
        with suppress(FileNotFoundError):  # it has just been deleted
            found[path.name] = json.loads(path.read_text())["score"]
    return found
