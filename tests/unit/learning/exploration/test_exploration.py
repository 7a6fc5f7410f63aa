"""What actors try besides the best known actions."""

import numpy as np
import pytest

from relaax.algorithm_base import EnvironmentInfo
from relaax.learning.distributions import ActionValues, Deterministic, ValuesOfChoices
from relaax.learning.exploration.action_noise import NormalNoise, OrnsteinUhlenbeckNoise
from relaax.learning.exploration.epsilon_greedy import EpsilonGreedy
from relaax.learning.exploration.ladder import Ladder, SlotPlaces
from relaax.parameters.schedule import Linear

SLOTS = np.arange(4)
ACTIONS = Deterministic((2,))


def introduced(place):
    return EnvironmentInfo("", None, None, number=0, seed=0, place=place)


def random():
    return np.random.default_rng(3)


class TestLadders:
    def test_the_last_environment_has_the_largest_sigma_and_the_first_has_some(self):
        np.testing.assert_allclose(Ladder(4).sigma_parts(SLOTS), [0.25, 0.5, 0.75, 1.0])

    def test_one_rung_is_the_same_for_all(self):
        np.testing.assert_allclose(Ladder().sigma_parts(SLOTS), np.ones(4))
        np.testing.assert_allclose(Ladder().epsilon_powers(SLOTS, 7.0), np.ones(4))

    def test_an_environment_is_on_the_rung_of_its_place_in_the_training(self):
        places, only = SlotPlaces(), np.zeros(1, np.int64)
        now = [0]
        places.introduce(only, [introduced(lambda: now[0])])
        ladder, found = Ladder(4, places), []
        for now[0] in (4, 5, 6, 7):
            found.append(float(ladder.sigma_parts(only)[0]))
        assert found == [0.25, 0.5, 0.75, 1.0]

    def test_epsilons_are_those_of_ape_x(self):
        """Horgan et al. 2018: epsilon_i = 0.4 ** (1 + i / (N - 1) * 7)."""
        found = 0.4 ** Ladder(4).epsilon_powers(SLOTS, 7.0)
        expected = [0.4 ** (1 + i / 3 * 7) for i in range(4)]
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_linear_schedule_stays_at_its_end():
    schedule = Linear(1.0, 0.1, 100)
    assert [schedule.at(step) for step in (0, 50, 100, 1000)] == pytest.approx([1, 0.55, 0.1, 0.1])


class TestNoiseOnActions:
    def test_normal_noise_has_the_size_of_its_rung(self):
        noise = NormalNoise(2, 0.5, random(), Ladder(4))
        drawn = np.stack([noise.draw(SLOTS) for _ in range(20_000)])
        np.testing.assert_allclose(drawn[:, :, 0].std(axis=0), [0.125, 0.25, 0.375, 0.5], rtol=0.03)

    def test_noise_of_one_leads_from_the_middle_to_a_bound(self):
        noise = np.array([[1.0, -0.5], [3.0, -3.0]], np.float32)
        found = ACTIONS.choose(np.zeros((2, 2), np.float32), noise)
        np.testing.assert_allclose(found, [[1.0, -0.5], [1.0, -1.0]])

    def test_correlated_noise_is_the_process_of_the_paper(self):
        noise = OrnsteinUhlenbeckNoise(2, 0.2, random(), theta=0.15, dt=0.5)
        noise.grow(4)
        noise.start(SLOTS)
        expected, drawn = np.zeros((4, 2)), random()
        for _ in range(5):
            normal = drawn.standard_normal((4, 2), np.float32)
            expected += -0.15 * 0.5 * expected + 0.2 * 0.5**0.5 * normal
            np.testing.assert_allclose(noise.draw(SLOTS), expected, rtol=1e-4, atol=1e-6)

    def test_correlated_noise_begins_anew_with_an_episode(self):
        noise = OrnsteinUhlenbeckNoise(2, 0.2, random(), theta=0.15, dt=0.5)
        noise.grow(4)
        drawn = random()
        for _ in range(10):
            before = noise.draw(SLOTS).copy()
            drawn.standard_normal((4, 2), np.float32)
        noise.start(np.array([1]))
        before[1] = 0
        added = 0.2 * 0.5**0.5 * drawn.standard_normal((4, 2), np.float32)
        expected = before * (1 - 0.15 * 0.5) + added
        np.testing.assert_allclose(noise.draw(SLOTS), expected, rtol=1e-4, atol=1e-6)


class TestEpsilonGreedy:
    VALUES = ActionValues(3)
    BEST = np.tile(np.array([0.0, 5.0, 1.0], np.float32), (4, 1))

    def chosen(self, epsilon, rungs=1):
        greedy = EpsilonGreedy(3, Linear(epsilon, epsilon, 1), lambda: 0, random(), Ladder(rungs))
        return np.stack([self.VALUES.choose(self.BEST, greedy.draw(SLOTS)) for _ in range(10_000)])

    def test_without_epsilon_it_is_the_best_action(self):
        assert (self.chosen(0.0) == 1).all()

    def test_a_drawn_action_may_be_the_best_one(self):
        found = [np.mean(self.chosen(0.3) == action) for action in range(3)]
        np.testing.assert_allclose(found, [0.1, 0.8, 0.1], atol=0.01)

    def test_an_action_is_drawn_from_those_that_are_allowed_each_alike(self):
        greedy = EpsilonGreedy(3, Linear(0.5, 0.5, 1), lambda: 0, random())
        masked = self.VALUES.masked(self.BEST, np.tile(np.uint8([1, 0, 1]), (4, 1)))
        chosen = np.stack([self.VALUES.choose(masked, greedy.draw(SLOTS)) for _ in range(10_000)])
        found = [np.mean(chosen == action) for action in range(3)]
        np.testing.assert_allclose(found, [0.25, 0, 0.75], atol=0.01)
        assert not (chosen == 1).any()

    def test_of_several_choices_each_is_drawn_for_itself(self):
        greedy = EpsilonGreedy(3, Linear(0.3, 0.3, 1), lambda: 0, random(), choices=2)
        values, best = ValuesOfChoices(2, 3), np.tile(self.BEST, (1, 2))
        chosen = np.stack([values.choose(best, greedy.draw(SLOTS)) for _ in range(10_000)])
        is_other = (chosen != 1).reshape(-1, 2)
        np.testing.assert_allclose(is_other.mean(axis=0), 0.2, atol=0.01)
        assert abs(is_other.all(axis=1).mean() - 0.2**2) < 0.005

    def test_environments_differ_in_epsilon(self):
        explored = (self.chosen(0.5, rungs=4) != 1).mean(axis=0)
        expected = 2 / 3 * 0.5 ** Ladder(4).epsilon_powers(SLOTS, 7.0)
        np.testing.assert_allclose(explored, expected, atol=0.015)
