"""PPO whose learners share gradients: the parameter server has the parameters."""

import numpy as np
import pytest
from driven_learner import DrivenLearner
from ppo_parts import SMALL, Played

from relaax.algorithm_base import NullMetrics, NullSaver
from relaax.errors import ParameterServerAway

SHARED = {
    **SMALL, "learning_rate_schedule": "constant", "filter_rewards": True,
    "learners": {"count": 1, "gradients": "synchronous"},
}  # fmt: skip


class Sharing:
    """A learner, and the parameter server that it shares with others."""

    def __init__(self, ppo, section):
        config = ppo.Config(section)
        self.server = ppo.ParameterServer(config, NullSaver(), NullMetrics()).bridge()
        self.made = ppo.make_learner(config, 3)
        self.connect()

    def connect(self):
        self.learner = DrivenLearner(self.made, self.server)


def batches_of(ppo):
    """Some batches, and the learner that publishes what it learns of them."""
    alone = {key: value for key, value in SHARED.items() if key != "learners"}
    played = Played(ppo, alone)
    batches = [played.play() for _ in range(2)]
    played.close()
    return batches, played.learner


@pytest.mark.parametrize("gradients", ["synchronous", "asynchronous"])
def test_one_that_shares_learns_to_the_bit_as_one_that_publishes(ppo, gradients):
    sharing = Sharing(ppo, {**SHARED, "learners": {"count": 1, "gradients": gradients}})
    batches, alone = batches_of(ppo)
    for batch in batches:
        made = sharing.learner.step({"rollouts": batch})
        assert made.updates == 4  # two passes of two minibatches
        assert made.terms.keys() == alone.step({"rollouts": batch}).terms.keys()
    values = sharing.server.pull()
    np.testing.assert_array_equal(values.vector, alone.vector())
    assert (values.version.number, values.global_t) == (8, 0)  # the replay counts steps
    assert not sharing.learner.values()


def test_updates_that_the_parameter_server_does_not_take_are_lost_with_a_warning(ppo, caplog):
    (batch, _), _ = batches_of(ppo)
    sharing = Sharing(ppo, SHARED)
    before = sharing.server.pull()

    def away(*arguments):
        raise ParameterServerAway("nobody answers")

    sharing.server.push = away
    assert sharing.learner.step({"rollouts": batch}).updates == 0
    assert caplog.text.count("an update is lost: nobody answers") == 1
    assert sharing.server.pull().version == before.version


def test_one_that_is_started_again_takes_the_parameters_that_are_there(ppo):
    (batch, _), _ = batches_of(ppo)
    sharing, again = Sharing(ppo, SHARED), Sharing(ppo, SHARED)
    sharing.learner.step({"rollouts": batch})
    again.learner.restore(sharing.learner.state())
    again.server = sharing.server
    again.connect()
    assert again.made.learner.policy.current.version == sharing.server.pull().version
    vectors = [each.made.learner.policy.current.vector for each in (again, sharing)]
    np.testing.assert_array_equal(*vectors)
