"""The previous action and reward are inputs of networks, in a training and in an evaluation."""

import numpy as np
import pytest
from learning_parts import Driven, Kept, report

from relaax.acting.actor import Actor
from relaax.acting.evaluator import EvaluationParts
from relaax.acting.executed_actions import ExecutedActions
from relaax.acting.preprocessor import Preprocessor
from relaax.algorithm_base import Evaluation, Values, Version
from relaax.learning.distributions import (
    ActionValues,
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    MultiDiscrete,
)
from relaax.learning.networks import Head, NetworkParameters, initial_parameters, read_network
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.off_policy import OffPolicyConfig, OffPolicySettings
from relaax.learning.policy import CurrentPolicy
from relaax.learning.previous import PreviousStep, previous_input, previous_size
from relaax.learning.rollouts import Columns, RolloutStore
from relaax.learning.steps import StepRecorder, observations_in, schema_of
from relaax.spaces import discrete
from relaax.steps import EXECUTED, FINAL, START, TERMINATED, TRUNCATED

CHOICES = Categorical(3)
NETWORK = read_network(
    {"previous": ["action", "reward"], "layers": [{"dense": 4}]},
    (2,),
    (Head("policy", 3),),
    previous_size(CHOICES),
)
COLUMNS = Columns.of(NETWORK, CHOICES)
VALUES = Values(Version(0), 0, initial_parameters(NETWORK.manifest, "uniform", 1))


class Source:
    """Has one policy."""

    def pull(self, known=None, policy="default"):
        return VALUES


class Seeing(NumpyPolicy):
    """Remembers what it has seen last of the previous step: one list for each environment."""

    def choose(self, parameters, observations, recurrent_state, noise):
        joined = [observations["previous/action"], observations["previous/reward"]]
        self.seen = np.concatenate(joined, axis=1).tolist()
        return super().choose(parameters, observations, recurrent_state, noise)


class Acting(Driven):
    def __init__(self, store=None):
        self.model, self.kept = Seeing(NETWORK, CHOICES), Kept()
        super().__init__(
            Actor(
                preprocessor=Preprocessor((2,), 1),
                policy=CurrentPolicy(unpack, VALUES),
                model=self.model,
                distribution=CHOICES,
                columns=COLUMNS,
                rollouts=store,
                experience=self.kept,
                random=np.random.default_rng(7),
                executed=ExecutedActions(discrete(3)),
                evaluation=EvaluationParts(Source(), unpack, lambda _: Preprocessor((2,), 1)),
                previous=PreviousStep.of(NETWORK, CHOICES),
            )
        )

    def step(self, flags, reward, observations, executed=(), finals=()):
        count = max(len(observations), len(finals))
        slots = np.arange(count)
        return self.act(
            report(slots, [flags] * count, [reward] * count, observations, finals, executed)
        )


def unpack(vector):
    return NetworkParameters(NETWORK.manifest.unpack(vector))


def row(action, reward):
    return [*np.eye(3)[action].tolist(), reward]


def driven(evaluates):
    actor = Acting()
    if evaluates:
        actor.agent = actor.agent.evaluator(Evaluation.STOCHASTIC)
    return actor


@pytest.mark.parametrize("evaluates", [False, True])
def test_a_network_sees_what_was_done_and_earned_last(evaluates):
    actor = driven(evaluates)
    actor.open(2)
    first = actor.step(START, 9, [[0, 0], [5, 5]])
    assert actor.model.seen == [[0] * 4] * 2
    second = actor.step(0, 2.5, [[1, 0], [6, 5]])
    assert actor.model.seen == [row(action, 2.5) for action in first]
    actor.step(EXECUTED, -1.0, [[2, 0], [7, 5]], executed=(second + 1) % 3)
    assert actor.model.seen == [row((action + 1) % 3, -1) for action in second]
    actor.step(TERMINATED | START, 3.0, [[2, 0], [7, 5]])
    assert actor.model.seen == [[0] * 4] * 2
    actor.close()


def test_the_state_in_which_an_episode_is_cut_off_has_the_last_action_and_reward():
    actor = Acting(RolloutStore(2, COLUMNS))
    actor.open(1)
    chosen = actor.step(START, 0, [[0, 0]])
    actor.step(TRUNCATED | FINAL, 4.0, (), finals=[[1, 0]])
    actor.step(START, 0, [[2, 0]])
    (rollout,) = actor.kept.rollouts
    assert rollout.observations["previous/action"][:, 0].tolist() == [
        [0, 0, 0], np.eye(3)[chosen[0]].tolist(), [0, 0, 0],
    ]  # fmt: skip
    assert rollout.observations["previous/reward"][:, 0, 0].tolist() == [0, 4, 0]
    assert rollout.observations[""][:, 0, 0].tolist() == [0, 1, 2]


def test_steps_are_stored_with_them():
    actor = Acting(StepRecorder(COLUMNS, is_on_policy=True))
    actor.open(1)
    actor.step(START, 0, [[0, 0]])
    actor.step(0, 2.0, [[1, 0]])
    actor.step(0, 3.0, [[2, 0]])
    _, step = actor.kept.rollouts
    found = observations_in(step.columns)
    assert found["previous/reward"].tolist() == [[2.0]]
    assert found[""].tolist() == [[1, 0]]


def test_off_policy_configurations_of_ones_own_store_them():
    class Config(OffPolicyConfig):
        def __init__(self, config):
            super().__init__(config)
            self.settings = OffPolicySettings.model_validate(dict(config))
            self.actions, self.network = CHOICES, NETWORK

        learning_rates, action_space = {}, None

    schema = schema_of(Config({"state_size": [2]}).stored_columns, is_on_policy=False)
    shapes = {name: column.shape for name, column in schema.columns.items()}
    assert shapes["observation/previous/action"] == (3,)
    assert (shapes["observation"], shapes["observation/previous/reward"]) == ((2,), (1,))


@pytest.mark.parametrize(
    ("head", "actions", "inputs"),
    [
        (Categorical(3), [2, 0], [[0, 0, 1], [1, 0, 0]]),
        (ActionValues(3, is_dueling=True), [2, 0], [[0, 0, 1], [1, 0, 0]]),
        (MultiDiscrete((2, 3)), [[1, 0], [0, 2]], [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1]]),
        (Bernoulli((2,)), [[1, 0], [0, 0]], [[1, 0], [0, 0]]),
        (DiagonalGaussian((2,), sigma="exp"), [[0.5, -1], [0, 1]], [[0.5, -1], [0, 1]]),
    ],
)
def test_an_action_is_one_number_for_each_of_its_choices(head, actions, inputs):
    found = previous_input(head, np.array(actions))
    assert found.tolist() == inputs
    assert found.shape[1] == previous_size(head)
