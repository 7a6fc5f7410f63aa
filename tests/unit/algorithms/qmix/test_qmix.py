"""QMIX and VDN: values of agents, their mixing, and updates, beside numpy."""

from dataclasses import replace

import numpy as np
import pytest
from driven_learner import DrivenLearner
from numpy_network import NumpyNetwork
from pydantic import ValidationError
from transition_batches import (
    COUNT,
    LEAST_PRIORITY,
    batch_of,
    require_state_to_the_bit,
    slope_of,
    stepped,
)

from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.networks.parameters_tf import ParameterTensors

AGENTS, ACTIONS, UNITS = 3, 2, 4
SECTION = {"state_size": [3], "action_size": [2, 2, 2], "hidden_layers": [4], "seed": 3}
QMIX = {**SECTION, "mixing_units": UNITS}
VDN = {**SECTION, "mixer": "vdn"}
NAMED = {
    **QMIX,
    "state_size": {"seen": [3], "whole": [2], "legal": [6]},
    "mixer_state": "whole",
    "action_mask": "legal",
}


def batch(seed, section=QMIX):
    random = np.random.default_rng(seed)
    actions = random.integers(ACTIONS, size=(COUNT, AGENTS)).astype(np.int32)
    plain = batch_of(random, actions, np.zeros(COUNT, np.float32))
    if section is not NAMED:
        return plain
    named = [
        {
            "seen": seen,
            "whole": random.normal(size=(COUNT, 2)).astype(np.float32),
            "legal": np.tile(np.uint8([1, 0, 0, 1, 1, 1]), (COUNT, 1)),
        }
        for seen in (plain.observations, plain.next_observations)
    ]
    return replace(plain, observations=named[0], next_observations=named[1])


class Numpy:
    """Values of agents and of all of them, float64."""

    def __init__(self, config):
        self.config = config

    def outputs(self, network, vector, observations):
        twin = NumpyNetwork(network, network.manifest.unpack(vector))
        return twin.forward(observations, np.zeros((2, 1, 0)), np.ones(COUNT))[0]

    def of_agents(self, vector, observations):
        """[B, N, A]."""
        outputs = self.outputs(self.config.network, vector, observations)["policy"]
        return outputs.reshape(COUNT, AGENTS, ACTIONS)

    def of_all(self, vector, values, observations):
        """[B], of the agents' values [B, N]."""
        if self.config.mixer is None:
            return values[:, 0] + values[:, 1] + values[:, 2]
        state = observations["whole"] if isinstance(observations, dict) else observations
        made = self.outputs(self.config.mixer, vector, state)
        joint = []
        for row, own in enumerate(values):
            weights = np.abs(made["weights"][row].reshape(AGENTS, UNITS))
            hidden = own @ weights + made["bias"][row]
            hidden = np.where(hidden > 0, hidden, np.exp(np.minimum(hidden, 0)) - 1)
            joint.append(hidden @ np.abs(made["last_weights"][row]) + made["last_bias"][row, 0])
        return np.array(joint)


def of_actions(values, actions):
    rows, agents = np.indices(actions.shape)
    return values[rows, agents, actions]


@pytest.mark.parametrize("is_double", [False, True], ids=["single", "double"])
@pytest.mark.parametrize("section", [QMIX, VDN, NAMED], ids=["qmix", "vdn", "state and mask"])
def test_an_update_moves_agents_and_mixer_as_numpy_does(qmix, section, is_double):
    config = qmix.Config({**section, "double": is_double, "prioritized": True})
    learner = DrivenLearner(qmix.make_learner(config, 3))
    random = np.random.default_rng(5)
    state = dict(learner.state())
    for name in ("target", "target_mixer"):  # other ones, so that double learning differs
        if name in state:
            state[name] = random.normal(size=state[name].shape).astype(np.float32)
    learner.restore(state)
    drawn = batch(0, section)
    result = learner.step({"all": drawn})
    terms, errors = result.terms, result.priorities["all"] - LEAST_PRIORITY

    ours, before = Numpy(config), {name: a.astype(np.float64) for name, a in state.items()}
    behind = drawn.next_observations
    target = ours.of_agents(before["target"], behind)
    chosen_by = ours.of_agents(before["policy"], behind) if is_double else target
    if section is NAMED:
        allowed = behind["legal"].reshape(COUNT, AGENTS, ACTIONS)
        chosen_by = np.where(allowed, chosen_by, -np.inf)
    best = of_actions(target, chosen_by.argmax(axis=-1))
    joint = ours.of_all(before.get("target_mixer"), best, behind)
    targets = drawn.rewards + drawn.discounts * joint

    def errors_at(policy, mixer):
        taken = of_actions(ours.of_agents(policy, drawn.observations), drawn.actions)
        return ours.of_all(mixer, taken, drawn.observations) - targets

    def loss(policy, mixer):
        return np.mean(errors_at(policy, mixer) ** 2 / 2 * drawn.weights)

    policy, mixer = before["policy"], before.get("mixer")
    np.testing.assert_allclose(errors, np.abs(errors_at(policy, mixer)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(terms["loss"], loss(policy, mixer), rtol=1e-4)
    slopes = {"policy": slope_of(lambda vector: loss(vector, mixer), policy)}
    if mixer is not None:
        slopes["mixer"] = slope_of(lambda vector: loss(policy, vector), mixer)
    norm = np.sqrt(sum((slope**2).sum() for slope in slopes.values()))
    np.testing.assert_allclose(terms["gradient norm"], norm, rtol=1e-3)
    for name, slope in slopes.items():
        scaled = slope * min(1, 10 / norm)
        moved = stepped(before[name], scaled, rate=5e-4)
        clear = np.abs(slope) > 1e-4  # Adam's first step has the sign of the slope alone
        found = learner.state()[name]
        np.testing.assert_allclose(found[clear], moved[clear], rtol=1e-3, atol=2e-6)


def test_the_value_of_all_never_falls_where_that_of_an_agent_rises(qmix):
    config = qmix.Config(QMIX)
    from importlib import import_module

    mixed = import_module(f"{qmix.__name__}.method_tf").mixed
    random = np.random.default_rng(2)
    heads = {head.name: head.outputs for head in config.mixer.heads}
    made = {
        name: random.normal(size=(500, units)).astype(np.float32) for name, units in heads.items()
    }
    values = random.normal(size=(500, AGENTS)).astype(np.float32)
    before = mixed(values, made).numpy()
    for agent in range(AGENTS):
        higher = values.copy()
        higher[:, agent] += random.uniform(0, 3, 500).astype(np.float32)
        assert (mixed(higher, made).numpy() >= before - 1e-5).all()


@pytest.mark.parametrize("knows_index", [False, True])
def test_an_agent_acts_by_what_it_sees_alone_and_knows_its_number_if_it_may(qmix, knows_index):
    config = qmix.Config({**SECTION, "agent_index": knows_index})
    vector = config.initial(1)["policy"]
    parameters = ParameterTensors(config.network).unpack(vector)
    policy = NumpyPolicy(config.network, config.actions, ("policy",))

    def values(*seen):
        observations, noise = np.float32([seen]), np.zeros((1, AGENTS * ACTIONS), np.float32)
        choice = policy.choose(parameters, observations, np.zeros((2, 1, 0), np.float32), noise)
        return choice.extras["policy"].reshape(AGENTS, ACTIONS)

    alike, other = values(0.5, 0.5, 0.5), values(0.5, -2.0, 0.5)
    np.testing.assert_array_equal(alike[[0, 2]], other[[0, 2]])
    assert (alike[1] != other[1]).all()
    assert np.array_equal(alike[0], alike[1]) == (not knows_index)


@pytest.mark.parametrize("section", [QMIX, VDN], ids=["qmix", "vdn"])
def test_a_learner_goes_on_from_its_state_to_the_bit(qmix, section):
    config = qmix.Config({**section, "target_every": 2})
    require_state_to_the_bit(
        lambda seed: qmix.make_learner(config, seed), [batch(seed) for seed in range(6)]
    )


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"action_size": [2, 3, 2]}, "agents share a network, so all have the same number"),
        ({"state_size": [4]}, r"vector of as many numbers for each, \[3 \* n\], is \[4\]"),
        ({"state_size": {"a": [3], "b": [3]}}, "agents observe one vector"),
        ({"mixer_state": "whole"}, "state_size has no vector of the name whole"),
        ({"mixer": "vdn", "mixing_units": 8}, "mixing_units"),
        ({"history_len": 4}, "leave history_len out"),
        ({"network": [{"dense": 4}]}, "leave network out"),
        ({"action_size": 2}, "action_size"),
    ],
)
def test_what_is_no_team_is_named(qmix, keys, said):
    with pytest.raises(ValidationError, match=said):
        qmix.Config({**SECTION, **keys})
