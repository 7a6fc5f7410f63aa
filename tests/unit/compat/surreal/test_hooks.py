"""The hooks of an actor, in Surreal's order: seed 000, "Actor class"."""

import gymnasium
import numpy as np
import pytest
from actor_parts import FollowedActor, KeptSteps, Numbered, Served, actor_of

from relaax.client.simulator import RunObserver
from relaax.compat.surreal import ACTOR_MODES
from relaax.errors import ConfigurationError
from relaax.replay.storage import ABANDONED, FINAL, START, TERMINATED


def test_the_hooks_are_called_in_their_order():
    with actor_of() as actor:
        actor.main(Numbered(length=2), episodes=1)
        step = ["pre_action", "act", "post_action"]
        assert actor.calls == ["fetch_parameter", "pre_episode", *step, *step, "post_episode"]


def test_steps_and_episodes_are_counted():
    with actor_of() as actor:
        actor.main(Numbered(length=3), episodes=2)
        assert (actor.current_episode, actor.cumulative_steps, actor.current_step) == (2, 6, 3)


def test_what_an_action_led_to_is_told():
    with actor_of() as actor:
        actor.main(Numbered(length=3), episodes=1)
        obs, action, obs_next, reward, done, info = actor.last
        assert (obs[0], action, obs_next[0], reward, done) == (2.0, 0, 3.0, 3.0, True)
        assert info == {"steps": 3, "truncated": False}


def test_an_episode_that_is_cut_off_is_done_and_said_to_be_truncated():
    with actor_of() as actor:
        actor.main(Numbered(length=3, is_cut_off=True), episodes=1)
        assert actor.last[4] is True
        assert actor.last[5]["truncated"] is True


def test_what_has_ended_is_not_truncated_too():
    class Both(Numbered):
        def step(self, action):
            observation, reward, terminated, _, info = super().step(action)
            return observation, reward, terminated, terminated, info

    with actor_of() as actor:
        actor.main(Both(length=3), episodes=1)
        assert actor.last[5]["truncated"] is False


def test_the_limit_of_an_episodes_length_cuts_it_off():
    kept = KeptSteps()
    with actor_of(kept=kept, limit_episode_length=4) as actor:
        actor.main(Numbered(length=7), episodes=1)
        assert actor.cumulative_steps == 4
        assert actor.last[5]["truncated"] is True


def test_an_actor_ends_in_the_middle_of_an_episode_when_its_session_is_over():
    with actor_of(is_over=lambda: actor.cumulative_steps == 3) as actor:
        actor.main(Numbered(length=7))
        assert actor.cumulative_steps == 3
        assert actor.calls[-1] == "post_action"


def test_who_watches_learns_of_steps_and_episodes():
    class Watch(RunObserver):
        steps, episodes, is_connected = 0, (), False

        def on_connected(self):
            self.is_connected = True

        def on_step(self, count=1):
            self.steps += count

        def on_episode(self, summary):
            self.episodes += ((summary.episode_return, summary.length),)

    watch = Watch()
    with actor_of() as actor:
        actor.main(Numbered(length=3), watch, episodes=2)
    assert watch.is_connected
    assert watch.steps == 6
    assert watch.episodes == ((6.0, 3), (6.0, 3))


def test_a_number_of_numpy_is_an_action_like_an_integer():
    class OfNumpy(FollowedActor):
        def act(self, obs):
            return np.int64(7)

    environment = Numbered(length=2)
    with actor_of(OfNumpy) as actor:
        actor.main(environment, episodes=1)
    assert environment.actions == [7, 7]


def test_the_environment_is_wrapped_by_the_hook_of_the_mode():
    class Wrapping(FollowedActor):
        def prepare_env_actor(self, environment):
            return gymnasium.wrappers.TimeLimit(super().prepare_env_actor(environment), 2)

        def prepare_env_eval(self, environment):
            return gymnasium.wrappers.TimeLimit(super().prepare_env_eval(environment), 5)

    lengths = []
    for mode in ("training", "eval_stochastic"):
        with actor_of(Wrapping, mode=mode) as actor:
            actor.main(Numbered(length=7), episodes=1)
            lengths.append(actor.cumulative_steps)
    assert lengths == [2, 5]


class TestModes:
    @pytest.mark.parametrize("mode", ACTOR_MODES)
    def test_only_what_trains_sends_its_steps(self, mode):
        kept = KeptSteps()
        with actor_of(mode=mode, kept=kept) as actor:
            actor.main(Numbered(length=3), episodes=1)
        assert len(kept.column("reward")) == (3 if mode == "training" else 0)

    @pytest.mark.parametrize("mode", ["eval_deterministic", "eval_stochastic"])
    def test_what_is_judged_plays_each_episode_with_one_version(self, mode):
        served, environment = Served(), Numbered(length=3)

        class Publishing(FollowedActor):
            def act(self, obs):
                served.publish(self.cumulative_steps + 1.0, self.cumulative_steps + 1)
                return super().act(obs)

        with actor_of(Publishing, mode=mode, served=served) as actor:
            actor.main(environment, episodes=2)
        assert environment.actions == [0, 0, 0, 3, 3, 3]

    def test_the_mode_may_change(self):
        with actor_of() as actor:
            actor.set_actor_mode("eval_deterministic")
            assert actor.actor_mode == "eval_deterministic"

    def test_steps_of_another_mode_between_are_no_part_of_what_is_learnt_from(self):
        class Changing(FollowedActor):
            def post_action(self, *taken):
                super().post_action(*taken)
                if self.current_step == 2:
                    self.set_actor_mode("eval_stochastic")
                if self.current_step == 4:
                    self.set_actor_mode("training")

        kept = KeptSteps()
        with actor_of(Changing, kept=kept) as actor:
            actor.main(Numbered(length=6), episodes=1)
        assert kept.column("observation") == [[0.0], [1.0], [4.0], [5.0]]
        assert kept.flags() == [START, FINAL | ABANDONED, START, TERMINATED]

    def test_an_actor_that_ends_in_another_mode_hands_on_what_it_had_begun(self):
        kept = KeptSteps()

        class Changing(FollowedActor):
            def post_action(self, *taken):
                super().post_action(*taken)
                if self.current_step == 2:
                    self.set_actor_mode("eval_stochastic")

        with actor_of(Changing, kept=kept) as actor:
            actor.main(Numbered(length=4), episodes=1)
        assert kept.flags() == [START, FINAL | ABANDONED]

    def test_an_unknown_mode_is_refused_with_those_that_there_are(self):
        with actor_of() as actor:
            with pytest.raises(ConfigurationError, match=r"training, eval_deterministic.*'eval'"):
                actor.set_actor_mode("eval")
            assert actor.actor_mode == "training"
