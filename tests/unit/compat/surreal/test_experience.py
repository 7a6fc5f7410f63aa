"""What an actor sends of its steps: all of them, each once."""

import numpy as np
import pytest
from actor_parts import InterruptedSteps, KeptSteps, Numbered, NumberedConfig, Served, actor_of

from relaax.algorithm_base import ConfigBase
from relaax.compat.surreal.experience import Acted, ExperienceSender, columns_of
from relaax.errors import ConfigurationError
from relaax.replay.storage import ABANDONED, FINAL, START, TERMINATED
from relaax.spaces import box

GAMMA = 0.9


def steps_of(environment, episodes=1, **session):
    kept = KeptSteps()
    with actor_of(kept=kept, **session) as actor:
        actor.main(environment, episodes=episodes)
    return kept


def test_each_step_is_sent_once_and_in_order():
    kept = steps_of(Numbered(length=3), episodes=2)
    assert kept.column("observation") == [[0], [1], [2], [0], [1], [2]]
    assert kept.column("reward") == [1, 2, 3, 1, 2, 3]
    assert kept.flags() == [START, 0, TERMINATED, START, 0, TERMINATED]


def test_a_step_says_how_probable_its_action_was_and_by_which_parameters():
    served = Served()
    served.publish(5.0, 42)
    kept = steps_of(Numbered(length=3), served=served)
    assert kept.column("action") == [5, 5, 5]
    assert kept.column("log_probability") == [0, -1, -2]
    assert kept.column("version") == [42, 42, 42]


class Overruled(Numbered):
    """Executes 3 in its second step, and says of each step what it has executed."""

    def step(self, action):
        *outcome, info = super().step(action)
        return *outcome, {**info, "executed_action": 3 if self._step == 2 else action}


def test_the_action_that_was_executed_is_stored_in_the_place_of_the_chosen_one():
    kept = steps_of(Overruled(length=3))
    assert kept.column("action") == [0, 3, 0]
    assert kept.column("on_policy") == [True, False, True]
    assert kept.column("log_probability") == [0, -1, -2]


def test_the_hook_is_told_of_an_executed_action_where_there_is_another_one():
    with actor_of() as actor:
        actor.main(Overruled(length=2), episodes=1)
        assert actor.last[-1] == {"steps": 2, "truncated": False, "executed_action": 3}
        actor.main(Overruled(length=1), episodes=2)
        assert actor.last[-1] == {"steps": 1, "truncated": False}


def test_an_action_that_the_environment_cannot_have_executed_is_named():
    class Wrong(Numbered):
        def step(self, action):
            return *super().step(action)[:-1], {"executed_action": 10}

    with pytest.raises(ValueError, match="holds 10, which is not of the space"):
        steps_of(Wrong(length=2))


def test_an_episode_of_seven_steps_makes_seven_experiences_of_five_the_last_four_shorter():
    replay = steps_of(Numbered(length=7)).in_a_replay(steps=5, discount=GAMMA)
    drawn = replay.sample("all", 7, 0.0).columns
    for t in range(7):
        rewards = np.arange(t + 1, min(t + 5, 7) + 1)
        expected = (rewards * GAMMA ** np.arange(len(rewards))).sum()
        assert drawn["return"][t] == pytest.approx(expected)
        assert drawn["observation"][t] == t
    # Five steps ahead of the first two the episode still goes on; behind the others it is over.
    np.testing.assert_allclose(drawn["discount"], [GAMMA**5] * 2 + [0] * 5, rtol=1e-6)
    assert drawn["next_observation"][:2, 0].tolist() == [5, 6]
    assert replay.table_sizes() == {"all": 0}


def test_an_episode_that_is_cut_off_bootstraps_from_its_last_state():
    kept = steps_of(Numbered(length=7, is_cut_off=True))
    assert kept.flags()[-2:] == [0, FINAL]
    drawn = kept.in_a_replay(steps=5, discount=GAMMA).sample("all", 7, 0.0).columns
    ahead = [5, 5, 5, 4, 3, 2, 1]
    np.testing.assert_allclose(drawn["discount"], [GAMMA**n for n in ahead], rtol=1e-6)
    assert drawn["next_observation"][:, 0].tolist() == [5, 6, 7, 7, 7, 7, 7]


def test_the_limit_of_an_episodes_length_bootstraps_too():
    kept = steps_of(Numbered(length=9), limit_episode_length=4)
    drawn = kept.in_a_replay(steps=1, discount=GAMMA).sample("all", 4, 0.0).columns
    np.testing.assert_allclose(drawn["discount"], [GAMMA] * 4, rtol=1e-6)
    assert drawn["next_observation"][-1, 0] == 4


def test_an_episode_that_is_left_ends_in_the_state_of_its_newest_step():
    kept = KeptSteps()
    with actor_of(kept=kept, is_over=lambda: actor.cumulative_steps == 3) as actor:
        actor.main(Numbered(length=7))
    assert kept.flags() == [START, 0, FINAL | ABANDONED]
    replay = kept.in_a_replay(steps=1, discount=GAMMA)
    assert replay.sample("all", 2, 0.0).columns["discount"].tolist() == pytest.approx([GAMMA] * 2)


def test_nothing_follows_a_step_whose_sending_was_interrupted():
    kept = InterruptedSteps(number=2)
    with pytest.raises(SystemExit), actor_of(kept=kept) as actor:
        actor.main(Numbered(length=7))
    assert kept.column("observation") == [[0], [1]]
    assert kept.flags() == [START, 0]


def test_an_actor_that_plays_again_after_an_interruption_sends_nothing_of_the_episode_before():
    kept = InterruptedSteps(number=2)
    with actor_of(kept=kept) as actor:
        with pytest.raises(SystemExit):
            actor.main(Numbered(length=7))
        actor.main(Numbered(length=3), episodes=1)
    assert kept.column("observation") == [[0], [1], [0], [1], [2]]
    assert kept.column("reward") == [1, 2, 1, 2, 3]
    assert kept.flags() == [START, 0, START, 0, TERMINATED]


def test_a_state_that_the_environment_writes_over_is_sent_as_it_was():
    class Reusing(Numbered):
        shared = np.zeros(1, np.float32)

        def _observation(self):
            self.shared[0] = self._step
            return self.shared

    assert steps_of(Reusing(length=3)).column("observation") == [[0], [1], [2]]


class TestColumns:
    def test_states_with_names_have_a_column_each(self):
        class Named(ConfigBase):
            def observation_space(self):
                parts = {"camera": box("uint8", (8, 8, 1)), "speed": box("float32", ())}
                return {"type": "Dict", "spaces": parts}

            def action_space(self):
                return box("float32", (2,))

        columns = columns_of(Named({}))
        assert columns.observation_shape == {"camera": (8, 8, 1), "speed": ()}
        assert columns.observations(1)["camera"].dtype == np.uint8
        assert columns.actions(3).shape == (3, 2)
        assert columns.actions(3).dtype == np.float32

    @pytest.mark.parametrize(
        ("said", "sent", "stored"),
        [
            ({}, np.float64, np.float32),
            ({}, np.float32, np.float32),
            ({}, np.uint8, np.uint8),
            ({"dtype": "float64"}, np.float64, np.float64),
        ],
    )
    def test_floats_are_stored_in_32_bits_unless_the_configuration_says_more(
        self, said, sent, stored
    ):
        class Said(NumberedConfig):
            def observation_space(self):
                return {"type": "Box", "shape": [1], **said}

        kept = KeptSteps()
        sender = ExperienceSender(columns_of(Said()), kept)
        sender.begin(sent([1]), Acted(0), starts=True, version=0)
        sender.end(1.0, terminated=True)
        assert kept.batches[0].columns["observation"].dtype == stored

    def test_a_configuration_without_spaces_is_refused(self):
        with pytest.raises(ConfigurationError, match=r"observation_space\(\) and action_space\(\)"):
            columns_of(ConfigBase({}))
