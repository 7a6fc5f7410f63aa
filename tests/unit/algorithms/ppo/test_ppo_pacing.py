"""Acting is at most so far ahead of learning, and no environment is too slow to be learnt from."""

import numpy as np
import pytest

from relaax.replay.replay import NotReady
from relaax.replay.storage import START

LENGTH, BATCH = 8, 4


class Game:
    """Environments that each deliver their steps, and a learner that draws batches of them."""

    def __init__(self, ppo, environments, **keys):
        section = {
            "state_size": [2], "action_size": 2, "hidden_layers": [4], "episode_len": LENGTH,
            "rollouts_per_batch": BATCH, **keys,
        }  # fmt: skip
        spec = ppo.replay_spec(ppo.Config(section))
        self.replay = spec.make(np.random.default_rng(0), 60.0)
        self._schema = spec.schema
        self._next = [0] * environments
        for number in range(environments):
            self.replay.open_writer(f"connection {number}", spec.schema)

    def deliver(self, number, steps):
        """Deliver steps of an environment; return whether they were taken."""
        first = self._next[number]
        rows, flags = self._schema.rows(steps), np.zeros(steps, np.uint8)
        flags[0] = START * (first == 0)
        rows["observation"][:, 0] = number
        try:
            self._next[number] = self.replay.append(f"connection {number}", 0, first, rows, flags)
        except NotReady:
            return False
        return True

    def learn(self):
        """Draw a batch, if there is one; return whose rollouts are in it, and how many."""
        try:
            sample = self.replay.sample("rollouts", BATCH, 0.0)
        except NotReady:
            return []
        return sample.columns["observation"][0, :, 0].astype(int).tolist()


@pytest.mark.parametrize("times_slower", [10, 100])
@pytest.mark.parametrize("lag", [0, 3])
def test_a_slow_environment_is_learnt_from_however_much_comes_in_between(ppo, times_slower, lag):
    """With 100, others make more steps within one of its rollouts than are stored at all."""
    game, slow, learnt = Game(ppo, 8, max_policy_lag=lag), 7, []
    for turn in range(4 * times_slower * LENGTH):
        game.deliver(turn % 7, LENGTH // 4)
        if turn % times_slower == 0:
            while not game.deliver(slow, 1):
                learnt += game.learn()
        learnt += game.learn()
    assert learnt.count(slow) >= 2
    assert game.replay.stats()["learnt share/least"] > 0.5


@pytest.mark.parametrize("lag", [0, 1, 3])
def test_acting_is_at_most_so_many_batches_ahead_of_the_one_that_is_learnt_from(ppo, lag):
    game = Game(ppo, 2, max_policy_lag=lag)
    while not game.learn():
        game.deliver(0, 1)
    delivered = 0
    while game.deliver(0, 1):
        delivered += 1
    ahead = lag * BATCH * LENGTH
    assert ahead <= delivered <= ahead + LENGTH
    while game.learn():  # what is learnt from is let go, too
        pass
    assert game.deliver(0, 1)


def test_what_a_connection_has_begun_when_it_ends_keeps_no_room(ppo):
    game = Game(ppo, 400, replay_size=2048)
    for number in range(400):
        assert game.deliver(number, LENGTH - 1)
        game.replay.close_writer(f"connection {number}")
    assert len(game.replay) == 2048
