"""The agent of an algorithm in a process of ``relaax-actor``, whose parameters are fetched."""

from contextlib import closing
from functools import partial
from itertools import count

import numpy as np
import pytest
from actor_parts import KeptSteps, Numbered
from gymnasium import spaces
from learning_parts import SMALL, SMALL_COLUMNS, small_values, unpack
from served_worker import Stub, settings
from stored_metrics import StoredMetrics

from relaax.acting.actor import Actor
from relaax.acting.evaluator import EvaluationParts
from relaax.acting.executed_actions import ExecutedActions
from relaax.acting.parameter_client import ParameterClient
from relaax.acting.preprocessor import Preprocessor
from relaax.acting.pulling import PolicyPuller, PullingSink
from relaax.algorithm_base import Evaluation, Gradient, NewValues, NullMetrics, Phase, Version
from relaax.client import Client
from relaax.client.gymnasium_runner import GymnasiumRunner
from relaax.client.simulator import RunOutcome
from relaax.compat.surreal import PullRule
from relaax.learning.distributions import Categorical
from relaax.learning.filters import Filters
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.policy import CurrentPolicy, PolicyUse
from relaax.learning.steps import StepRecorder
from relaax.parameters.parameter_server import ParameterService
from relaax.parameters.published import PublishedParameters, PublishedSource, published_source
from relaax.replay.storage import FINAL, START, TERMINATED
from relaax.server.actor.pulled_bridge import PulledBridge
from relaax.server.actor.wiring import ParameterFetches
from relaax.server.rlx_server.worker.agents import Agents
from relaax.server.rlx_server.worker.memory_worker import MemoryWorker
from relaax.spaces import discrete
from relaax.telemetry.metrics import EVALUATION_REWARD_OF


class Pair(Numbered):
    """States have two numbers."""

    observation_space = spaces.Box(-100, 100, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def _observation(self):
        return np.array([self._step, -self._step], np.float32)


@pytest.fixture(name="service")
def _service():
    return ParameterService(PublishedParameters(small_values().vector), NullMetrics())


@pytest.fixture(name="bridge")
def _bridge(service):
    bridge = PulledBridge(service)
    bridge.served = service
    return bridge


def actor_of(bridge, kept, use=None):
    """The actor of a worker, as an algorithm's builder wires it."""
    policy, distribution = CurrentPolicy(unpack, bridge.pull()), Categorical(2)
    return Actor(
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


def play(bridge, environment, kept, episodes=1, rule=None, evaluation=None, use=None):
    """Play as a process of ``relaax-actor`` does; return the scalars that the worker stored."""
    fetches = ParameterFetches(rule or PullRule(), evaluates=evaluation is not None)
    stub = Stub()

    def make_agents():
        agents = Agents(actor_of(bridge, kept, use), stub, act_together=True)
        fetches.begin(bridge, client_of_parameters)
        return agents

    with closing(
        ParameterClient(bridge.served, known=bridge.pull().version)
    ) as client_of_parameters:
        worker = MemoryWorker(settings(), make_agents, lambda: False, before=fetches.before)
        with (
            closing(worker),
            Client("localhost:1", transport=worker, evaluate=evaluation) as client,
        ):
            result = GymnasiumRunner(environment, client).run(episodes)
    assert result.outcome is RunOutcome.FINISHED
    return stub.stored


def test_each_step_is_delivered_once(bridge):
    kept = KeptSteps()
    play(bridge, Pair(length=3), kept, episodes=2)
    assert kept.column("reward") == [1, 2, 3, 1, 2, 3]
    assert kept.flags() == [START, 0, TERMINATED] * 2
    assert [state[0] for state in kept.column("observation")] == [0, 1, 2] * 2


def test_the_state_in_which_an_episode_was_cut_off_is_delivered(bridge):
    kept = KeptSteps()
    play(bridge, Pair(length=3, is_cut_off=True), kept)
    assert kept.flags() == [START, 0, 0, FINAL]
    assert kept.column("observation")[-1] == [3, -3]


def test_the_action_that_was_executed_is_delivered(bridge):
    class Opposite(Pair):
        def step(self, action):
            return *super().step(action)[:-1], {"executed_action": 1 - action}

    kept, environment = KeptSteps(), Opposite(length=3)
    play(bridge, environment, kept)
    assert kept.column("action") == [1 - action for action in environment.actions]


def publishing(service, first=0):
    """An environment during whose steps something is published."""

    class Publishing(Pair):
        def step(self, action):
            number = first + len(self.actions)
            service.push(NewValues(small_values(seed=number).vector, number))
            return super().step(action)

    return Publishing


def test_the_parameters_change_at_a_fetch_and_at_no_other_moment(service, bridge):
    kept = KeptSteps()
    play(bridge, publishing(service)(length=6), kept, rule=PullRule("step", 3))
    # Two versions were published before the third action, and three more before the sixth.
    assert kept.column("version") == [0, 0, 2, 2, 2, 5]


def test_by_episode_the_parameters_stay_the_same_within_each(service, bridge):
    kept = KeptSteps()
    play(bridge, publishing(service)(length=2), kept, episodes=4, rule=PullRule("episode", 2))
    assert kept.column("version") == [0, 0, 2, 2, 2, 2, 6, 6]


def test_what_is_done_with_parameters_is_stored_once(service, bridge):
    stored = StoredMetrics()
    use = PolicyUse(stored, clock=partial(next, count(step=10)))  # so that each update is stored
    service.push(NewValues(small_values(seed=9).vector, 0))
    play(bridge, publishing(service)(length=4), KeptSteps(), rule=PullRule("step", 3), use=use)
    # Before the third action: the second one's reward comes with the state that it is chosen in.
    assert stored.values["actor/actions per update"] == [(1, None)]
    assert stored.values["actor/episodes per update"] == [(0, None)]
    assert len(stored.values["actor/publish delay"]) == 1


@pytest.mark.parametrize("evaluation", Evaluation)
def test_an_evaluation_plays_each_episode_with_what_was_fetched_before_it(
    service, bridge, evaluation
):
    kept = KeptSteps()
    stored = play(
        bridge, publishing(service, 10)(length=3), kept, episodes=3, evaluation=evaluation
    )
    scores = [(y, x) for name, y, x in stored.values if name == EVALUATION_REWARD_OF]
    assert scores == [(6, 0), (6, 3), (6, 6)]
    assert kept.batches == []


def test_the_agent_knows_the_global_step_also_while_nothing_is_published(service, bridge):
    policy = CurrentPolicy(unpack, bridge.pull())
    bridge.subscribe(policy)
    known = []

    class Counting(Pair):
        def step(self, action):
            known.append(policy.global_t)
            service.add(10)  # what others do
            return super().step(action)

    play(bridge, Counting(length=5), KeptSteps(), rule=PullRule("step", 2))
    assert known == [0, 10, 10, 30, 30]
    assert policy.current.version == Version(0)


class TestPulledBridge:
    def test_values_are_those_that_were_used_last_and_not_newer_ones(self, service, bridge):
        service.push(NewValues(small_values(seed=9).vector, 1))
        before = bridge.pull().vector
        service.pull()
        assert bridge.pull().vector is before

    def test_values_without_a_vector_bring_the_global_step_alone(self, service, bridge):
        before = bridge.pull()
        service.add(5)
        bridge.use(service.pull(before.version))
        assert (bridge.pull().global_t, bridge.pull().version) == (5, Version(0))
        assert bridge.pull().vector is before.vector
        assert bridge.pull(before.version).vector is None

    def test_an_agent_that_asks_for_what_was_published_gets_that_of_the_values_in_use(
        self, service, bridge
    ):
        source = PublishedSource(bridge)
        service.push(NewValues(small_values(seed=8).vector, 6))
        assert source.pull().version == Version(0)
        bridge.use(service.pull())
        service.push(NewValues(small_values(seed=9).vector, 7))
        assert source.pull(Version(0)).version == Version(6)
        bridge.use(service.pull())
        values = source.pull(Version(6))
        assert values.version == Version(7)
        np.testing.assert_array_equal(values.vector, small_values(seed=9).vector)
        assert source.pull(values.version).vector is None

    def test_an_agent_that_learns_from_what_was_published_has_other_values_at_a_fetch_alone(
        self, service, bridge
    ):
        policy = CurrentPolicy(unpack, bridge.pull())
        with closing(PolicyPuller(published_source(bridge), policy, interval_s=0)):
            service.push(NewValues(small_values(seed=8).vector, 6))
            bridge.use(service.pull())
            assert policy.current.version == Version(6)

    def test_other_policies_are_pulled_as_they_are(self, service, bridge):
        service.push(NewValues(small_values(seed=9).vector, 1), policy="other")
        np.testing.assert_array_equal(
            bridge.pull(policy="other").vector, small_values(seed=9).vector
        )

    def test_all_other_calls_reach_the_parameter_server(self, service, bridge):
        assert bridge.add(5) == 5
        assert service.add(0) == 5
        assert bridge.phase() is Phase.TRAINING
        assert bridge.metrics() is service.metrics()
        with pytest.raises(ValueError, match="not moved by gradients"):
            bridge.push(Gradient(np.zeros(1, np.float32)))
