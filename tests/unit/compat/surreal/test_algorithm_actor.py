"""An actor that acts with the agent of an algorithm, like a worker of the RLX server."""

from contextlib import closing
from functools import partial
from itertools import count

import numpy as np
import pytest
from actor_parts import KeptSteps, Numbered, actor_of
from gymnasium import spaces
from learner_parts import parameter_service
from learning_parts import SMALL, SMALL_COLUMNS, small_values, unpack
from stored_metrics import StoredMetrics

from relaax.acting.actor import Actor
from relaax.acting.agent import SingleAgent
from relaax.acting.evaluator import EvaluationParts
from relaax.acting.executed_actions import ExecutedActions
from relaax.acting.preprocessor import Preprocessor
from relaax.acting.pulling import PullingSink
from relaax.algorithm_base import Evaluation, NullMetrics, Phase, Version, Wanted
from relaax.client.simulator import RunObserver
from relaax.compat.surreal import PullRule
from relaax.compat.surreal.algorithm_actor import AlgorithmActor
from relaax.compat.surreal.pulled_bridge import PulledBridge
from relaax.errors import ConfigurationError
from relaax.learning.distributions import Categorical
from relaax.learning.filters import Filters
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.policy import CurrentPolicy, PolicyUse
from relaax.learning.steps import StepRecorder
from relaax.parameters.published import PublishedParameters, PublishedService, PublishedSource
from relaax.replay.storage import FINAL, START, TERMINATED
from relaax.spaces import discrete


class Pair(Numbered):
    """States have two numbers."""

    observation_space = spaces.Box(-100, 100, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def _observation(self):
        return np.array([self._step, -self._step], np.float32)


@pytest.fixture(name="service")
def _service():
    return PublishedService(PublishedParameters(small_values().vector), NullMetrics())


@pytest.fixture(name="bridge")
def _bridge(service):
    return PulledBridge(service)


def agent_of(bridge, kept, use=None):
    """The agent of one environment, as an algorithm's builder wires it."""
    policy, distribution = CurrentPolicy(unpack, bridge.get()), Categorical(2)
    actor = Actor(
        preprocessor=Preprocessor((2,), 1),
        policy=policy,
        model=NumpyPolicy(SMALL, distribution),
        distribution=distribution,
        columns=SMALL_COLUMNS,
        rollouts=StepRecorder(SMALL_COLUMNS),
        experience=PullingSink(kept, bridge, policy, use=use),
        executed=ExecutedActions(discrete(2)),
        random=np.random.default_rng(3),
        evaluation=EvaluationParts(
            source=bridge,
            unpack=unpack,
            make_preprocessor=lambda filters: Preprocessor((2,), 1),
            filters=Filters(),
        ),
    )
    return SingleAgent(actor, NullMetrics())


def play(bridge, environment, kept, episodes=1, rule=None, agent=None, **session):
    agent = agent or agent_of(bridge, kept)
    make = partial(AlgorithmActor, agent=agent, bridge=bridge)
    with actor_of(make, served=bridge.remote, rule=rule, **session) as actor:
        actor.main(environment, episodes=episodes)
        return actor


def test_its_agent_delivers_each_step_once(bridge):
    kept = KeptSteps()
    play(bridge, Pair(length=3), kept, episodes=2)
    assert kept.column("reward") == [1, 2, 3, 1, 2, 3]
    assert kept.flags() == [START, 0, TERMINATED] * 2
    assert [state[0] for state in kept.column("observation")] == [0, 1, 2] * 2


def test_its_agent_is_told_in_which_state_an_episode_was_cut_off(bridge):
    kept = KeptSteps()
    play(bridge, Pair(length=3, is_cut_off=True), kept)
    assert kept.flags() == [START, 0, 0, FINAL]
    assert kept.column("observation")[-1] == [3, -3]


def test_its_agent_is_told_which_action_was_executed(bridge):
    class Opposite(Pair):
        def step(self, action):
            return *super().step(action)[:-1], {"executed_action": 1 - action}

    kept, environment = KeptSteps(), Opposite(length=3)
    play(bridge, environment, kept)
    assert kept.column("action") == [1 - action for action in environment.actions]


def test_the_parameters_change_at_a_fetch_and_at_no_other_moment(service, bridge):
    kept = KeptSteps()

    class Publishing(Pair):
        def step(self, action):
            service.publish_values(small_values(seed=self._step).vector, self._step)
            return super().step(action)

    play(bridge, Publishing(length=6), kept, rule=PullRule("step", 3))
    # Two versions were published before the third action, and three more before the sixth.
    assert kept.column("version") == [0, 0, 2, 2, 2, 5]


def test_what_the_hook_makes_of_the_parameters_is_what_the_agent_acts_with(service, bridge):
    class Doubling(AlgorithmActor):
        def on_parameter_fetched(self, parameters, info):
            return {name: 2 * part for name, part in parameters.items()}

    vector = small_values(seed=9).vector
    service.publish_values(vector, 1)
    make = partial(Doubling, agent=agent_of(bridge, KeptSteps()), bridge=bridge)
    with actor_of(make, served=bridge.remote) as actor:
        actor.fetch_parameter()
        np.testing.assert_array_equal(bridge.get().vector, 2 * vector)
        assert list(actor.module_dict()) == ["policy"]


def test_what_is_done_with_parameters_is_stored_once_by_the_agent(service, bridge):
    class Publishing(Pair):
        def step(self, action):
            service.publish_values(small_values(seed=self._step).vector, self._step)
            return super().step(action)

    stored = StoredMetrics()
    use = PolicyUse(stored, clock=partial(next, count(step=10)))  # so that each update is stored
    agent = agent_of(bridge, KeptSteps(), use)
    service.publish_values(small_values(seed=9).vector, 0)
    play(bridge, Publishing(length=4), None, rule=PullRule("step", 3), agent=agent, metrics=stored)
    # Before the third action: the second one's reward comes with the state that it is chosen in.
    assert stored.values["actor/actions per update"] == [(1, None)]
    assert stored.values["actor/episodes per update"] == [(0, None)]
    assert len(stored.values["actor/publish delay"]) == 1


def test_an_agent_stays_in_its_mode(bridge):
    make = partial(AlgorithmActor, agent=agent_of(bridge, KeptSteps()), bridge=bridge)
    with actor_of(make, served=bridge.remote) as actor:
        actor.set_actor_mode("training")
        with pytest.raises(ConfigurationError, match="make another actor for eval_deterministic"):
            actor.set_actor_mode("eval_deterministic")


def test_an_agent_that_is_closed_hands_on_what_it_has_begun(bridge):
    kept = KeptSteps()
    with closing(agent_of(bridge, kept)) as agent:
        agent.act(np.zeros(2, np.float32))
        agent.reward_and_act(1.0, np.ones(2, np.float32))
    assert kept.flags() == [START, FINAL]


def test_an_agent_that_evaluates_plays_each_episode_with_what_was_fetched_before_it(
    service, bridge
):
    class Publishing(Pair):
        def step(self, action):
            number = 10 + len(self.actions)
            service.publish_values(small_values(seed=number).vector, number)
            return super().step(action)

    kept, agent = KeptSteps(), agent_of(bridge, KeptSteps())
    agent.evaluate(Evaluation.DETERMINISTIC)
    versions = []

    class Watch(RunObserver):
        def on_episode(self, summary):
            versions.append(agent.policy().version)

    make = partial(AlgorithmActor, agent=agent, bridge=bridge)
    with actor_of(make, mode="eval_deterministic", served=bridge.remote) as actor:
        actor.main(Publishing(length=3), Watch(), episodes=3)
    assert versions == [0, 3, 6]
    assert kept.batches == []


def test_the_agent_knows_the_global_step_also_while_nothing_is_published(service, bridge):
    policy = CurrentPolicy(unpack, bridge.get())
    bridge.subscribe(policy)
    known = []

    class Counting(Pair):
        def step(self, action):
            known.append(policy.global_t)
            service.increment_global_t(10)  # what others do
            return super().step(action)

    play(bridge, Counting(length=5), KeptSteps(), rule=PullRule("step", 2))
    assert known == [0, 10, 10, 30, 30]
    assert policy.current.version == Version(0)


class PublishingBetween(PublishedService):
    """Something else is published after each answer to a question for info."""

    def fetch(self, wanted, known_hash=""):
        found = super().fetch(wanted, known_hash)
        if wanted is Wanted.INFO:
            self.publish_values(small_values(seed=9).vector, 9)
        return found


class TestPulledBridge:
    def test_values_are_those_that_were_used_last_and_not_newer_ones(self, service, bridge):
        service.publish_values(small_values(seed=9).vector, 1)
        before = bridge.get().vector
        bridge.remote.fetch(Wanted.BOTH)
        assert bridge.get().vector is before

    def test_a_fetch_by_a_hash_that_is_known_brings_no_vector(self, service, bridge):
        service.publish_values(small_values(seed=9).vector, 1)
        first = bridge.remote.fetch(Wanted.BOTH)
        again = bridge.remote.fetch(Wanted.BOTH, first.hash)
        assert first.vector is not None
        assert again.vector is None
        assert again.info.iteration == 1

    def test_values_that_are_published_during_a_fetch_come_with_what_is_known_of_them(self):
        service = PublishingBetween(PublishedParameters(small_values().vector), NullMetrics())
        service.publish_values(small_values(seed=8).vector, 8)
        bridge = PulledBridge(service)
        found = bridge.remote.fetch(Wanted.BOTH)
        newest = service.get_values()
        np.testing.assert_array_equal(found.vector, newest.vector)
        assert found.info.iteration == 9
        assert found.hash == found.info.hash == service.fetch(Wanted.PARAMETER).hash
        assert bridge.remote.values.version == newest.version
        assert bridge.remote.fetch(Wanted.BOTH, found.hash).vector is None

    def test_a_first_fetch_brings_what_was_published_before_the_bridge_was_made(self, service):
        service.publish_values(small_values(seed=9).vector, 7)
        bridge = PulledBridge(service)
        found = bridge.remote.fetch(Wanted.BOTH)
        np.testing.assert_array_equal(found.vector, service.get_values().vector)
        assert found.info.iteration == 7

    def test_each_fetch_keeps_the_global_step_and_the_bridge_tells_it_when_it_is_asked_to(
        self, service, bridge
    ):
        service.publish_values(small_values(seed=9).vector, 1)
        first = bridge.remote.fetch(Wanted.BOTH)
        service.increment_global_t(5)
        assert bridge.remote.fetch(Wanted.BOTH, first.hash).vector is None
        assert bridge.get().global_t == 0
        bridge.note_global_t()
        assert bridge.get().global_t == 5

    def test_before_anything_is_published_a_fetch_brings_nothing(self, bridge):
        assert bridge.remote.fetch(Wanted.BOTH).vector is None
        assert bridge.get().version == Version(0)

    def test_values_that_gradients_move_are_fetched_though_nothing_is_published(self):
        service = parameter_service()
        bridge = PulledBridge(service)
        assert bridge.remote.fetch(Wanted.BOTH).vector is None
        service.apply_gradients(np.ones_like(bridge.get().vector))
        found = bridge.remote.fetch(Wanted.BOTH)
        np.testing.assert_array_equal(found.vector, service.get_values().vector)
        assert found.info.iteration == 1
        assert bridge.remote.fetch(Wanted.BOTH, found.hash).vector is None

    def test_a_fetch_by_the_agent_brings_the_values_in_use(self, service, bridge):
        source = PublishedSource(bridge)
        assert source.get().version == Version(0)
        service.publish_values(small_values(seed=9).vector, 7)
        found = bridge.remote.fetch(Wanted.BOTH)
        assert source.get().version == Version(0)
        bridge.use(found.vector)
        values = source.get(Version(0))
        assert values.version == Version(7)
        np.testing.assert_array_equal(values.vector, found.vector)
        assert source.get(values.version).vector is None

    def test_all_other_calls_reach_the_parameter_server(self, service, bridge):
        assert bridge.add(5) == 5
        assert service.increment_global_t(0) == 5
        assert bridge.phase() is Phase.TRAINING
        assert bridge.metrics() is service.metrics()
        with pytest.raises(ValueError, match="not moved by gradients"):
            bridge.apply_gradients(np.zeros(1, np.float32))
