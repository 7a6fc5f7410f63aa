"""Every bundled algorithm takes the actions that environments executed, in the plant's units."""

from contextlib import closing

import numpy as np
import pytest
from learning_parts import Driven, Gradients, Kept, Stored
from processes import REPOSITORY

from relaax.acting.executed_actions import OTHERS
from relaax.algorithm_base import InvalidState, NullSaver
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.configuration.named_files import bundled_algorithms
from relaax.steps import EXECUTED, START, TERMINATED, Steps

COUNT = 2
STATES = np.zeros((COUNT, 3), np.float32)
NONE = STATES[:0]

DISCRETE = {"state_size": [3], "action_size": 3, "hidden_layers": [8], "seed": 1}
#: A plant's own units, and its middle is not 0.
CONTINUOUS = {**DISCRETE, "action_size": 2, "action_low": [0, -100], "action_high": [10, 300]}

#: By algorithm: its section.
SECTIONS = {
    "acer": {**DISCRETE, "episode_len": 5},
    "cem": DISCRETE,
    "da3c": {**DISCRETE, "episode_len": 5},
    "da3c_cont": {**CONTINUOUS, "episode_len": 5, "lstm": False},
    "ddpg": CONTINUOUS,
    "dqn": DISCRETE,
    "es": {**CONTINUOUS, "continuous": True},
    "impala": {**DISCRETE, "episode_len": 5},
    "mappo": {**DISCRETE, "episode_len": 5},
    "ppo": {**DISCRETE, "episode_len": 5},
    "ppo of numbers": {**CONTINUOUS, "continuous": True, "episode_len": 5},
    "qmix": {**DISCRETE, "action_size": [3, 3, 3]},
    "r2d2": DISCRETE,
    "sac": CONTINUOUS,
    "trpo": {**DISCRETE, "episode_len": 5},
    "unreal": {**DISCRETE, "episode_len": 5, "pixel_control": False},
}
OFF_POLICY = ("ddpg", "dqn", "qmix", "r2d2", "sac")


class Playing:
    """Two environments of an algorithm's agent."""

    def __init__(self, name):
        algorithm = load_algorithm(REPOSITORY / "algorithms" / name.partition(" ")[0])
        self.config = algorithm.Config(SECTIONS[name])
        self.metrics, self.kept = Stored(), Kept()
        server = algorithm.ParameterServer(self.config, NullSaver(), self.metrics)
        more = {"experience": self.kept} if algorithm.has_learner(self.config) else {}
        agent = algorithm.make_batch_agent(self.config, server.bridge(), 1, False, **more)
        self.agent = Driven(agent)
        self.slots = self.agent.open(COUNT)

    def act(self, flags, executed=(), states=STATES):
        return self.agent.act(
            Steps(self.slots, np.uint8(flags), np.zeros(COUNT), states, NONE, executed)
        )

    def others(self, actions):
        """Return actions of the plant, none of which are these."""
        if actions.dtype.kind == "i":
            return (actions + 1) % 3
        return np.where(actions > 5, actions - 1, actions + 1)

    def close(self):
        self.agent.close()


def test_no_algorithm_is_missing_here():
    assert {name.partition(" ")[0] for name in SECTIONS} == set(bundled_algorithms())


@pytest.mark.parametrize("name", OFF_POLICY)
def test_what_learns_off_policy_stores_what_was_executed(name):
    with closing(Playing(name)) as playing:
        actions = playing.act([START] * COUNT)
        executed = playing.others(actions)
        playing.act([TERMINATED | EXECUTED, EXECUTED], executed, STATES[:1])
        playing.act([START, 0])
    stored = {}
    for batch in playing.kept.rollouts:
        for slot, action in zip(batch.slots.tolist(), batch.columns["action"], strict=True):
            stored.setdefault(slot, action)
    units = playing.config.action_units
    expected = executed if units is None else units.from_plant(executed)
    np.testing.assert_array_equal([stored[slot] for slot in playing.slots.tolist()], expected)


@pytest.mark.parametrize("name", OFF_POLICY)
def test_an_action_that_was_executed_as_it_was_sent_is_stored_as_it_was_chosen(name):
    """To the bit: nothing is converted there and back."""
    stored = []
    for flags in (0, EXECUTED):
        with closing(Playing(name)) as playing:
            actions = playing.act([START] * COUNT)
            playing.act([flags] * COUNT, actions if flags else ())
        stored.append(playing.kept.rollouts[0].columns["action"])
    np.testing.assert_array_equal(*stored)


@pytest.mark.parametrize("name", ["ppo", "ppo of numbers"])
def test_ppo_stores_its_own_action_and_that_another_one_was_executed(name):
    with closing(Playing(name)) as playing:
        actions = playing.act([START] * COUNT)
        playing.act([EXECUTED] * COUNT, np.stack([playing.others(actions)[0], actions[1]]))
    (steps,) = playing.kept.rollouts
    assert steps.columns["on_policy"].tolist() == [False, True]
    units = playing.config.action_units
    stored = steps.columns["action"]
    sent = stored if units is None else units.to_plant(stored)
    np.testing.assert_array_equal(sent, actions)


@pytest.mark.parametrize("name", ["da3c", "da3c_cont"])
def test_da3c_learns_values_alone_of_steps_in_which_other_actions_were_executed(name, monkeypatch):
    gradients = Gradients(monkeypatch)
    with closing(Playing(name)) as playing:
        actions = playing.act([START] * COUNT)
        for _ in range(5):
            actions = playing.act([EXECUTED] * COUNT, playing.others(actions))
    (rollouts,) = gradients.rollouts
    assert rollouts.valid.all()
    assert not rollouts.on_policy.any()
    terms = dict(playing.metrics.values)
    assert terms["learner/policy loss"] == terms["learner/entropy"] == 0
    assert terms["learner/grad"] > 0
    assert terms[OTHERS] == 1


@pytest.mark.parametrize("name", SECTIONS)
def test_each_refuses_what_is_not_of_its_action_space(name):
    with closing(Playing(name)) as playing:
        actions = playing.act([START] * COUNT)
        is_choice = actions.dtype.kind == "i"
        for wrong, reason in (
            (actions + 1000, "above the largest choice, 2" if is_choice else "above action_high"),
            (actions - 1000, "below 0" if is_choice else "below action_low"),
            (actions[:, np.newaxis], "shape"),
            (actions.astype(np.float64) if is_choice else actions > 0, "dtype"),
        ):
            with pytest.raises(InvalidState, match=f"an executed action .*{reason}"):
                playing.agent.agent.check_executed(wrong)
