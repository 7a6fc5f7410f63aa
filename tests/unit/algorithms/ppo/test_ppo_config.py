"""What PPO's section may say."""

import pytest

from relaax.learning.distributions import Bernoulli, Categorical, DiagonalGaussian
from relaax.spaces import box

SMALL = {"state_size": [3], "action_size": 2}


def settings_of(ppo, **keys):
    return ppo.Config({**SMALL, **keys}).settings


def test_the_kind_of_actions_is_that_of_da3c_and_its_continuous_form(ppo):
    assert isinstance(ppo.Config(SMALL).distribution, Categorical)
    bits = {"state_size": [3], "action_bits": 2}
    assert isinstance(ppo.Config(bits).distribution, Bernoulli)
    numbers = ppo.Config({**SMALL, "continuous": True, "action_low": -1, "action_high": 1})
    assert isinstance(numbers.distribution, DiagonalGaussian)
    assert numbers.distribution.sigma == "exp"
    assert numbers.action_space() == {**box("float32", (2,)), "low": -1, "high": 1}


def test_it_learns_with_adam_unless_another_optimiser_is_asked_for(ppo):
    assert settings_of(ppo).optimizer.gradient_norm_clipping == 0.5
    assert settings_of(ppo).Adam is not None
    other = settings_of(ppo, SGD={"momentum": 0.5})
    assert (other.Adam, other.optimizer.momentum) == (None, 0.5)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"policy_clip": None}, "policy_clip is missing"),
        ({"policy_clip_range": [0.3, 0.1]}, "policy_clip_range: 0.3 must lie below 0.1"),
        (
            {"objective": "kl_penalty", "kl_penalty_range": [1, 1]},
            "kl_penalty_range: 1 must lie below 1",
        ),
        ({"replay_size": 100}, "replay_size must be at least 2 batches, .* 2048 steps, is 100"),
        ({"replay_size": 4000, "max_policy_lag": 2}, "at least 4 batches, .* 4096 steps, is 4000"),
        (
            {"wait_for_learning": True},
            "wait_for_learning: no key of PPO; write max_policy_lag: 0, the batches",
        ),
        ({"wait_for_learning": "always"}, "write max_policy_lag: 0,"),
        ({"max_staleness": 0, "max_policy_lag": 0}, "exclude each other"),
        ({"max_staleness": 0, "learners": {"count": 2}}, "counts the versions of one learner"),
        ({"max_staleness": 0, "learner": "worker"}, "max_staleness: no effect without learner: p"),
        ({"wait_for_learning": "if_behind"}, "write max_policy_lag: 1,"),
        ({"max_policy_lag": None}, "max_policy_lag: null is not known any more: no rollout is"),
        ({"action_low": -1}, "action_low"),
        ({"vtrace": True}, "vtrace"),
        ({"objective": "both"}, "objective"),
    ],
)
def test_what_does_not_fit_is_refused(ppo, keys, message):
    with pytest.raises(ValueError, match=message):
        settings_of(ppo, **keys)


def test_a_replay_with_few_places_for_environments_is_doubted_with_their_number(ppo):
    (doubt,) = settings_of(ppo, replay_size=2048).doubts()
    assert "2,048 steps hold the rollouts of 7 environments that play at once" in doubt
    assert not list(settings_of(ppo, replay_size=8192).doubts())


PENALTY = {"objective": "kl_penalty"}
RANGE = [0.01, 0.1]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({**PENALTY, "policy_clip": 0.1}, "policy_clip: no effect without objective: clip"),
        ({**PENALTY, "policy_clip_range": RANGE}, "policy_clip_range: no effect without objective"),
        ({"kl_penalty": 2.0, "kl_cutoff": 1.0}, "kl_penalty, kl_cutoff: no effect without objecti"),
        ({"kl_penalty_range": RANGE}, "kl_penalty_range: no effect without objective: kl_penalty"),
        ({"kl_target": 0.1}, "kl_target: no effect without policy_clip_range, learning_rate_sched"),
        ({"learning_rate_range": RANGE}, "learning_rate_range: no effect without learning_rate_sc"),
    ],
)
def test_a_key_without_effect_is_refused(ppo, keys, message):
    with pytest.raises(ValueError, match=message):
        settings_of(ppo, **keys)


@pytest.mark.parametrize(
    "keys",
    [
        {**PENALTY, "kl_target": 0.1, "kl_cutoff": 1.0, "kl_penalty_range": RANGE},
        {"policy_clip_range": RANGE, "kl_target": 0.1},
        {"learning_rate_schedule": "kl", "kl_target": 0.1, "learning_rate_range": RANGE},
        {"kl_stop": 0.1},
    ],
)
def test_the_same_keys_are_taken_where_something_follows_them(ppo, keys):
    assert settings_of(ppo, **keys)


def test_a_penalty_does_without_a_clip(ppo):
    assert settings_of(ppo, objective="kl_penalty", policy_clip=None).policy_clip is None


def test_a_checkpoint_is_of_one_network_and_its_filters(ppo):
    first = ppo.Config(SMALL).fingerprint()
    assert first["algorithm"] == "ppo"
    assert ppo.Config({**SMALL, "filter_states": False}).fingerprint() != first
    assert ppo.Config({**SMALL, "passes": 3}).fingerprint() == first


class TestReplay:
    def test_a_batch_is_drawn_when_it_is_complete_and_no_more_steps_are_taken_meanwhile(self, ppo):
        table = ppo.replay_spec(ppo.Config({**SMALL, "rollouts_per_batch": 6})).tables["rollouts"]
        assert (table.limiter.min_items, table.limiter.max_items) == (6, 6)
        assert table.selector == "fifo"
        assert table.holds_drawn

    def test_acting_may_be_so_many_batches_ahead_beside_the_one_that_is_learnt_from(self, ppo):
        config = ppo.Config({**SMALL, "rollouts_per_batch": 6, "max_policy_lag": 2})
        table = ppo.replay_spec(config).tables["rollouts"]
        assert (table.limiter.min_items, table.limiter.max_items) == (6, 18)
        assert table.holds_drawn

    def test_a_recurrent_policy_stores_its_state(self, ppo):
        config = ppo.Config({**SMALL, "lstm": True, "lstm_size": 5, "burn_in": 2})
        spec = ppo.replay_spec(config)
        assert spec.schema.columns["recurrent_state"].shape == (2, 5)
        assert spec.tables["rollouts"].view.burn_in == 2
        assert spec.capacity == 32 * 8 * (128 + 2)
