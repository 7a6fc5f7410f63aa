"""MAPPO: PPO whose critic sees all agents of an environment; Yu et al. 2021, arXiv:2103.01955."""

import numpy as np
import pytest
from driven_learner import DrivenLearner
from learning_parts import Driven, Kept
from pydantic import ValidationError
from rollout_samples import random_rollouts
from trained import DISCRETE, algorithm_of

from relaax.algorithm_base import EnvironmentInfo, NullMetrics, NullSaver
from relaax.learning.networks.parameters_tf import ParameterTensors
from relaax.steps import START, AgentName, Steps

TEAM = {**DISCRETE, "team_size": 2, "hidden_layers": [8], "filter_states": False}


def test_the_defaults_are_those_of_the_paper_and_of_its_code():
    settings = algorithm_of("mappo", DISCRETE)[1].settings
    assert (settings.rewards_gamma, settings.trace_decay, settings.policy_clip) == (0.99, 0.95, 0.2)
    assert (settings.passes, settings.minibatches, settings.value_clip) == (5, 1, None)
    assert (settings.huber_delta, settings.normalize_values) == (10.0, True)
    assert (settings.entropy_beta, settings.value_loss_weight) == (0.01, 1.0)
    assert (settings.Adam.epsilon, settings.Adam.gradient_norm_clipping) == (1e-5, 10.0)
    assert settings.initialization == "orthogonal"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"learner": "worker"}, "learner"),
        ({"learners": {"count": 2}}, "normalize_values needs one learner in a process"),
        ({"state_size": [8, 8]}, r"team_size: 2 agents: a state is an image, \[8, 8\]"),
        ({"team_features": [4]}, "team_features: 4: observations have the numbers 0 to 3"),
        ({"team_size": 1, "team_features": [0]}, "team_features: no effect without team_size"),
        ({"state_size": {"team": [2]}}, "state_size: team: an input has this name"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(change, reason):
    with pytest.raises((ValidationError, ValueError), match=reason):
        algorithm_of("mappo", {**TEAM, **change})


@pytest.mark.parametrize(
    "layers",
    [
        {},
        {"lstm": True, "lstm_size": 4},
        {"hidden_layers": None, "network": {"layers": [{"dense": 8}]}},
        {
            "hidden_layers": None, "state_size": {"place": [3], "speed": []},
            "network": {"heads": {
                "policy": {"sees": ["place", "speed"]},
                "value": {"sees": ["place", "team"], "layers": [{"dense": 8}]},
            }},
        },
    ],
)  # fmt: skip
def test_the_value_depends_on_what_the_others_observe_and_the_policy_does_not(layers):
    section = {key: value for key, value in {**TEAM, **layers}.items() if value is not None}
    algorithm, config = algorithm_of("mappo", section)
    network = config.network
    builder, tensors = algorithm.module.Builder(config), ParameterTensors(network)
    parameters = tensors.unpack(builder.parameters().initial[: network.manifest.size])
    rollouts = random_rollouts(network, dtype=config.columns().observation_dtype)
    method = builder.method(tensors)
    before = method.evaluated(parameters, rollouts)
    rollouts.observations["team"][..., -1] += 10
    after = method.evaluated(parameters, rollouts)
    np.testing.assert_array_equal(after["policy"], before["policy"])
    assert np.abs(after["value"] - before["value"]).max() > 1e-3


def test_one_agent_has_the_network_of_ppo_and_no_further_input():
    _, ours = algorithm_of("mappo", DISCRETE)
    _, theirs = algorithm_of("ppo", DISCRETE)
    assert ours.network == theirs.network
    assert ours.observation_space() == theirs.observation_space()
    assert ours.misfit_of([AgentName("a"), AgentName("b")]) is not None


def played(section, turns=6):
    """Two environments of two agents each; return all that is stored, and what was observed."""
    algorithm, config = algorithm_of("mappo", section)
    server = algorithm.ParameterServer(config, NullSaver(), NullMetrics()).bridge()
    kept = Kept()
    agent = algorithm.make_batch_agent(config, server, 0, False, experience=kept)
    driven, random = Driven(agent), np.random.default_rng(5)
    slots = driven.open(4)
    names = [AgentName(name, group, index) for group in "xy" for index, name in enumerate("ab")]
    agent.connected(slots, [EnvironmentInfo("", None, None, 0, 0, agent=each) for each in names])
    seen = random.normal(size=(turns, 4, 4)).astype(np.float32)
    for turn in range(turns):
        flags = np.full(4, START if turn == 0 else 0, np.uint8)
        nothing = np.zeros((0, 4), np.float32)
        driven.act(Steps(slots, flags, random.normal(size=4), seen[turn], nothing))
    agent.close_slots(slots)
    return algorithm, config, kept.rollouts, seen


def test_each_stored_step_has_the_observations_of_its_team_and_is_learnt_from():
    section = {**TEAM, "state_size": [4], "episode_len": 5, "rollouts_per_batch": 4, "passes": 1}
    algorithm, config, stored, seen = played(section)
    mates = {0: 1, 1: 0, 2: 3, 3: 2}
    turns = dict.fromkeys(range(4), 0)
    for batch in stored:
        for slot, team in zip(batch.slots, batch.columns["observation/team"], strict=True):
            np.testing.assert_array_equal(team, seen[turns[slot]][mates[slot]])
            turns[slot] += 1
    assert set(turns.values()) == {len(seen)}
    spec = algorithm.replay_spec(config)
    replay = spec.make(np.random.default_rng(0), lease_s=1000.0)
    replay.open_writer("worker", spec.schema)
    places = dict.fromkeys(range(4), 0)
    for batch in stored:
        for index in range(len(batch)):
            one = batch.chosen(np.array([index]))
            slot = int(one.slots[0])
            places[slot] = replay.append("worker", slot, places[slot], one.columns, one.flags)
    learner = DrivenLearner(algorithm.make_learner(config, 3))
    rollouts = learner.inputs["rollouts"].prepare(replay.sample("rollouts", 4, 0.0))
    before = learner.vector()
    result = learner.step({"rollouts": rollouts})
    assert result.terms["clipped"] == 0
    assert np.isfinite(learner.vector()).all()
    assert (learner.vector() != before).any()
