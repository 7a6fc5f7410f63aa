"""Workers whose actions another process chooses do and record the same as others."""

import subprocess
import sys
from contextlib import ExitStack, closing

import numpy as np
import pytest
from learning_parts import Driven, Kept
from processes import REPOSITORY, wait_for

from relaax.algorithm_base import EvaluatedPolicy, Evaluation, NewValues, NullMetrics, NullSaver
from relaax.assembly import bundled
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.errors import ConfigurationError
from relaax.inference.batching import Batching
from relaax.steps import START, TERMINATED, Steps

DISCRETE = {"state_size": [3], "action_size": 2, "hidden_layers": [8], "seed": 3}
CONTINUOUS = {
    "state_size": [3], "action_size": 1, "hidden_layers": [8], "action_low": -2, "action_high": 2,
    "seed": 3,
}  # fmt: skip
CASES = {
    "ppo": ("ppo", DISCRETE),
    "ppo without filters": ("ppo", {**DISCRETE, "filter_states": False}),
    "ppo with memory": ("ppo", {**DISCRETE, "lstm": True, "lstm_size": 4}),
    "ppo of continuous actions": ("ppo", {**CONTINUOUS, "continuous": True}),
    "impala": ("impala", DISCRETE),
    "mappo with memory": ("mappo", {**DISCRETE, "lstm": True, "lstm_size": 4}),
    "sac": ("sac", {**CONTINUOUS, "random_steps": 0}),
    "sac at random at first": ("sac", {**CONTINUOUS, "random_steps": 1000}),
    "ddpg": ("ddpg", CONTINUOUS),
    "dqn": ("dqn", DISCRETE),
    "qmix": ("qmix", {**DISCRETE, "action_size": [2, 2, 2]}),
    "r2d2": ("r2d2", DISCRETE),
}


class Asked:
    """An ``Inference`` in this process, which keeps the questions and their answers."""

    def __init__(self, batching):
        self._batching, self.asked = batching, []

    def expect(self, forms):
        assert forms == self._batching.forms()

    def choose(self, question):
        answer = self._batching.choose(question)
        self.asked.append((question, answer))
        return answer

    def close(self):
        pass


class Worlds:
    """The agents of a worker with the policy, and of one without, on one parameter server."""

    def __init__(self, algorithm, section, resources):
        package = bundled(algorithm)
        self._config = package.Config(section)
        self.link = package.ParameterServer(self._config, NullSaver(), NullMetrics()).bridge()
        self._make, self._resources = package.make_batch_agent, resources
        self.server = self.agent(Kept(), seed=99, answers=True)
        self.inference = Asked(Batching(self.server.inference(), 128))
        self.steps = Kept(), Kept()
        self.own = Driven(self.agent(self.steps[0]))
        self.remote = Driven(self.agent(self.steps[1], inference=self.inference))

    def agent(self, sink, seed=5, **more):
        agent = self._make(self._config, self.link, seed, False, experience=sink, **more)
        self._resources.enter_context(closing(agent))
        return agent

    def publish(self, iteration):
        """Publish other values, and wait until the inference server chooses with them."""
        values = self.link.pull()
        self.link.push(NewValues(values.vector * np.float32(1.5), iteration))
        question = self.inference.asked[-1][0]
        before = self.inference.asked[-1][1].version
        wait_for(lambda: self.inference.choose(question).version != before, "another version")


@pytest.fixture
def worlds():
    with ExitStack() as resources:
        yield lambda case: Worlds(*CASES[case], resources)


def play(agent, turns, count=4):
    """Play episodes of five steps, and return all actions."""
    random, slots, flags = np.random.default_rng(1), agent.open(count), START
    actions = []
    for turn in range(turns):
        rewards = np.zeros(count) if flags == START else random.normal(size=count)
        observations = random.normal(size=(count, 3)).astype(np.float32)
        finals, executed = np.zeros((0, 3), np.float32), ()
        report = Steps(
            slots, np.full(count, flags, np.uint8), rewards, observations, finals, executed
        )
        actions.append(np.array(agent.act(report)))
        flags = START | TERMINATED if turn % 5 == 4 else 0
    return actions


def columns_of(kept):
    names = kept.rollouts[0].columns
    return {
        name: np.concatenate([batch.columns[name] for batch in kept.rollouts]) for name in names
    }


@pytest.mark.parametrize("case", CASES)
def test_actions_and_recorded_steps_are_those_of_a_worker_with_the_policy(worlds, case):
    world = worlds(case)
    expected, found = play(world.own, 12), play(world.remote, 12)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    own, remote = map(columns_of, world.steps)
    assert own.keys() == remote.keys()
    for name, column in own.items():
        np.testing.assert_allclose(remote[name], column, rtol=1e-5, err_msg=name)
    assert len(world.inference.asked) == 12


def test_a_step_has_the_version_of_the_server_that_has_chosen(worlds):
    world = worlds("ppo")
    play(world.remote, 3, count=1)
    world.publish(iteration=7)
    play(world.remote, 3, count=1)
    assert columns_of(world.steps[1])["version"].tolist() == [0, 0, 7, 7]


def test_a_question_may_be_repeated(worlds):
    world = worlds("ppo with memory")
    play(world.remote, 3)
    question, answer = world.inference.asked[-1]
    again = world.inference.choose(question)
    np.testing.assert_array_equal(again.actions, answer.actions)
    np.testing.assert_array_equal(again.recurrent_state, answer.recurrent_state)


def test_an_evaluation_takes_the_most_probable_actions_of_the_newest_policy(worlds):
    world = worlds("ppo of continuous actions")
    evaluators = [
        Driven(each.agent.evaluator(Evaluation.DETERMINISTIC)) for each in (world.own, world.remote)
    ]
    expected, found = (play(each, 6) for each in evaluators)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert all(not question.noise.any() for question, _ in world.inference.asked)
    played = EvaluatedPolicy(0, None, by_learner=True)
    assert evaluators[1].agent.policies(np.array([0])) == [played]
    for each in evaluators:
        each.close()


@pytest.mark.parametrize(
    ("algorithm", "section", "words"),
    [
        ("da3c", DISCRETE, "workers that learn need the parameters"),
        ("es", DISCRETE, "each episode has parameters of its own"),
        ("ddpg", {**CONTINUOUS, "exploration": {"type": "parameters"}}, "noise on"),
    ],
)
def test_algorithms_that_need_a_policy_in_each_worker_are_refused(algorithm, section, words):
    package = bundled(algorithm)
    config = package.Config(section)
    link = package.ParameterServer(config, NullSaver(), NullMetrics()).bridge()
    for role in ({"inference": Asked(None)}, {"answers": True}):
        with pytest.raises(ConfigurationError, match=words):
            package.make_batch_agent(config, link, 0, False, experience=Kept(), **role)


def test_an_algorithm_whose_workers_learn_is_refused_before_it_is_loaded_into_workers():
    algorithm = load_algorithm(REPOSITORY / "algorithms" / "da3c")
    with pytest.raises(ConfigurationError, match=r"algorithm .*da3c: inference servers cannot"):
        algorithm.require_remote_inference(algorithm.Config(DISCRETE))


WITHOUT_TENSORFLOW = """
import sys
from relaax.algorithm_base import NullExperience, NullMetrics, NullSaver
from relaax.assembly import bundled

class Silent:
    def expect(self, forms):
        pass

package = bundled(sys.argv[1])
config = package.Config({"state_size": [3], "hidden_layers": [8], **eval(sys.argv[2])})
link = package.ParameterServer(config, NullSaver(), NullMetrics()).bridge()
link.pull = None
package.make_batch_agent(config, link, 0, True, experience=NullExperience(), inference=Silent())
assert "tensorflow" not in sys.modules
"""


@pytest.mark.parametrize("case", ["ppo", "sac"])
def test_a_worker_without_a_policy_has_neither_tensorflow_nor_parameters(case):
    algorithm, section = CASES[case]
    words = [sys.executable, "-c", WITHOUT_TENSORFLOW, algorithm, repr(section)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
