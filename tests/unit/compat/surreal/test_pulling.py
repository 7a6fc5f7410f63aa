"""When an actor fetches parameters, and what it does with them."""

import numpy as np
import pytest
from actor_parts import FollowedActor, Numbered, Served, actor_of

from relaax.acting.parameter_client import PeriodicTracker
from relaax.algorithm_base import Metrics
from relaax.compat.surreal import PullRule
from relaax.errors import ConfigurationError


def fetches_before(calls, hook):
    """After how many calls of ``hook``, the one just made included, parameters were fetched."""
    return [
        calls[:index].count(hook) for index, call in enumerate(calls) if call == "fetch_parameter"
    ]


def test_by_step_with_three_the_calls_3_6_and_9_fetch_and_the_start_does():
    with actor_of(rule=PullRule("step", 3)) as actor:
        actor.main(Numbered(length=10), episodes=1)
        assert fetches_before(actor.calls, "pre_action") == [0, 3, 6, 9]


def test_steps_are_counted_over_episodes():
    with actor_of(rule=PullRule("step", 3)) as actor:
        actor.main(Numbered(length=2), episodes=5)
        assert fetches_before(actor.calls, "pre_action") == [0, 3, 6, 9]


def test_by_episode_with_three_the_episodes_3_6_and_9_fetch_and_the_start_does():
    with actor_of(rule=PullRule("episode", 3)) as actor:
        actor.main(Numbered(length=2), episodes=10)
        assert fetches_before(actor.calls, "pre_episode") == [0, 3, 6, 9]


def test_an_actor_that_is_judged_fetches_before_each_episode_and_in_none():
    with actor_of(mode="eval_stochastic", rule=PullRule("step", 1)) as actor:
        actor.main(Numbered(length=3), episodes=2)
        assert fetches_before(actor.calls, "pre_episode") == [0, 1, 2]


def test_a_tracker_of_one_says_so_each_time():
    tracker = PeriodicTracker(1)
    assert [tracker.track_increment() for _ in range(3)] == [True] * 3


@pytest.mark.parametrize(("mode", "interval"), [("steps", 1), ("step", 0), ("episode", -1)])
def test_a_rule_that_makes_no_sense_is_refused(mode, interval):
    with pytest.raises(ConfigurationError, match="parameters are fetched"):
        PullRule(mode, interval)


class TestParameterServer:
    """What it has published: nothing, what the actor has, or something else."""

    def test_empty_the_actor_acts_with_its_own_parameters(self):
        environment = Numbered(length=2)
        with actor_of(served=Served(first=9.0)) as actor:
            actor.parameter[:] = 4
            actor.main(environment, episodes=1)
            assert actor.fetch_parameter_info() is None
        assert environment.actions == [4, 4]

    def test_the_same_as_the_actor_has_changes_nothing(self):
        served = Served()
        served.publish(5.0, 10)
        with actor_of(served=served) as actor:
            actor.fetch_parameter()
            actor.parameter[:] = 3  # would be overwritten by what is loaded again
            actor.fetch_parameter()
            assert actor.parameter[0] == 3
            assert actor.iteration == 10

    def test_the_same_values_published_again_are_not_sent_again(self):
        served = Served()
        served.publish(5.0, 10)
        with actor_of(served=served) as actor:
            actor.fetch_parameter()
            served.publish(5.0, 20)
            actor.parameter[:] = 3
            actor.fetch_parameter()
            assert actor.parameter[0] == 3

    def test_others_are_used_from_the_next_action_on(self):
        served, environment = Served(), Numbered(length=4)

        class Publishing(FollowedActor):
            def post_action(self, *what):
                super().post_action(*what)
                served.publish(float(self.current_step), self.current_step)

        with actor_of(Publishing, served=served, rule=PullRule("step", 2)) as actor:
            actor.main(environment, episodes=1)
        assert environment.actions == [0, 1, 1, 3]

    def test_what_is_known_of_them_can_be_asked_for_alone(self):
        served = Served()
        served.publish(5.0, 10)
        with actor_of(served=served) as actor:
            info = actor.fetch_parameter_info()
            assert (info.iteration, info.time) == (10, 12.5)
            assert actor.parameter[0] == 0


def test_the_hook_may_change_what_was_fetched():
    class Noisy(FollowedActor):
        def on_parameter_fetched(self, parameters, info):
            parameters = super().on_parameter_fetched(parameters, info)
            return {name: part + info.iteration for name, part in parameters.items()}

    served = Served()
    served.publish(5.0, 2)
    with actor_of(Noisy, served=served) as actor:
        actor.fetch_parameter()
        assert actor.parameter[0] == 7


class Stored(Metrics):
    def __init__(self):
        self.means = {}

    def scalar(self, name, y, x=None):
        self.means[name] = y


def test_actions_and_episodes_between_two_updates_are_measured():
    served, stored = Served(), Stored()
    served.publish(1.0, 1)
    with actor_of(served=served, metrics=stored, rule=PullRule("episode", 100)) as actor:
        actor.main(Numbered(length=3), episodes=2)
        served.publish(2.0, 2)
        actor.fetch_parameter()
    # The first update came before any action.
    assert stored.means["actor/actions per update"] == 3.0
    assert stored.means["actor/episodes per update"] == 1.0
    assert stored.means["actor/publish delay"] > 0
    assert np.isfinite(stored.means["actor/publish delay"])
