"""What DA3C accepts in the YAML's algorithm: section."""

import json

import pytest
from pydantic import ValidationError

from relaax.acting.preprocessor import ActionMask
from relaax.learning.networks import POLICY

SMALLEST = {"action_size": 4, "state_size": [84, 84]}


def test_the_defaults_are_those_of_the_seed(da3c):
    settings = da3c.Config(SMALLEST).settings
    assert (settings.episode_len, settings.max_global_step) == (5, 1e8)
    assert (settings.initial_learning_rate, settings.entropy_beta) == (7e-4, 0.01)
    assert (settings.rewards_gamma, settings.lstm, settings.gpu) == (0.99, False, False)
    rmsprop = settings.RMSProp
    assert (rmsprop.decay, rmsprop.epsilon, rmsprop.gradient_norm_clipping) == (0.99, 0.1, 40)


def test_history_widens_the_last_axis(da3c):
    shapes = [
        da3c.Config({"action_size": 2, "state_size": size, "history_len": 4}).network
        for size in ([84, 84], [50, 60, 3], [24], [])
    ]
    assert [s.observation_shape for s in shapes] == [(84, 84, 4), (50, 60, 12), (96,), (4,)]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"action_size": 0}, "action_size"),
        ({"action_size": "four"}, "action_size"),
        ({"action_size": [3, 0]}, "action_size"),
        ({"action_size": []}, "action_size: must not be an empty list"),
        (
            {"action_size": None},
            r"action_size \(how many actions there are\) or action_bits is missing",
        ),
        ({"action_bits": 2}, "action_size and action_bits exclude each other"),
        ({"state_size": [2, 3, 4, 5]}, "state_size"),
        ({"state_size": {}}, "state_size"),
        ({"state_size": {"a": {"b": [2]}, "a/b": [3]}}, "two observations are named 'a/b'"),
        ({"state_size": {"legal": [4]}, "action_mask": "legal"}, "state_size: has the action mask"),
        ({"rewards_gamma": 1.5}, "rewards_gamma"),
        ({"RMSProp": {"decay": 1}}, "decay"),
        ({"Adam": {"beta1": 1.0}}, "beta1"),
        ({"RMSProp": {}, "SGD": {}}, "RMSProp and SGD exclude each other"),
        ({"episode_length": 5}, "episode_length"),
        ({"seed": -1}, "seed"),
        ({"passes": 2}, "passes above 1 need policy_clip"),
        (
            {"least_rollouts_per_update": 64},
            "least_rollouts_per_update 64 is above rollouts_per_update 32",
        ),
        ({"policy_clip": 0.2, "vtrace": True}, "policy_clip and vtrace exclude each other"),
    ],
)
def test_what_cannot_be_used_is_named(da3c, change, key):
    with pytest.raises(ValidationError, match=key):
        da3c.Config({**SMALLEST, **change})


@pytest.mark.parametrize(
    ("keys", "space", "outputs"),
    [
        ({"action_size": 4}, {"type": "Discrete", "n": 4}, 4),
        ({"action_size": [3, 2]}, {"type": "MultiDiscrete", "nvec": [3, 2]}, 5),
        ({"action_size": [4]}, {"type": "MultiDiscrete", "nvec": [4]}, 4),
        ({"action_bits": 4}, {"type": "MultiBinary", "shape": [4]}, 4),
        ({"action_bits": [2, 3]}, {"type": "MultiBinary", "shape": [2, 3]}, 6),
    ],
)
def test_actions_are_one_choice_or_several_or_bits(da3c, keys, space, outputs):
    config = da3c.Config({"state_size": [3], **keys})
    assert config.action_space() == space
    assert config.network.head(POLICY).units == outputs
    masked = {"state_size": {"place": [3], "legal": [outputs]}, "action_mask": "legal", **keys}
    nvec = tuple(space.get("nvec", ()))
    mask = ActionMask("legal", outputs, nvec, may_forbid_all="action_bits" in keys)
    assert da3c.Config(masked).settings.mask == mask


def test_checkpoints_of_other_actions_are_told_apart(da3c):
    """As JSON values, which a checkpoint's manifest gives back as they are."""
    keys = [{"action_size": 4}, {"action_size": [4]}, {"action_size": [2, 2]}, {"action_bits": 4}]
    prints = [da3c.Config({"state_size": [3], **each}).fingerprint() for each in keys]
    assert json.loads(json.dumps(prints)) == prints
    assert len({json.dumps(each) for each in prints}) == len(keys)
    assert prints[0] == {
        "algorithm": "da3c", "action_size": 4, "observation_shape": [3], "convolutions": [],
        "dense_units": [64, 64], "lstm_size": 0,
    }, "as before there were choices and bits"  # fmt: skip


@pytest.mark.parametrize("gpu", [False, True])
def test_the_servers_are_told_whether_workers_use_the_gpu(da3c, gpu):
    assert da3c.Config({**SMALLEST, "gpu": gpu}).uses_gpu() is gpu


def test_the_seeds_image_network_has_as_many_parameters_as_in_2017(da3c):
    """676,401 + 257 for each action without LSTM, 1,206,339 with it, for 18 actions."""
    section = {"action_size": 18, "state_size": [84, 84], "history_len": 4}
    networks = [da3c.Config({**section, "lstm": lstm}).network for lstm in (False, True)]
    assert [network.manifest.size for network in networks] == [681_027, 1_206_339]


def test_an_image_too_small_for_the_convolutions_is_refused(da3c):
    with pytest.raises(ValueError, match=r"state_size: an image of \[10, 10\] is too small"):
        da3c.Config({"action_size": 2, "state_size": [10, 10]})
