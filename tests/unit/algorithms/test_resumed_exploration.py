"""A training that goes on does not explore more than before because of another key."""

import pytest
from checkpoints import saver
from processes import REPOSITORY

from relaax.algorithm_base import NullMetrics
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.errors import ConfigurationError

SHARED = {"count": 2}
SECTIONS = {
    "dqn": {"state_size": [3], "action_size": 2, "hidden_layers": [4]},
    "sac": {"state_size": [3], "action_size": 1, "hidden_layers": [4]},
    "ddpg": {"state_size": [3], "action_size": 1, "hidden_layers": [4]},
}


@pytest.fixture(name="at_step_5000", params=["one learner", "several"])
def _at_step_5000(request, tmp_path):
    """Makes a parameter server, with other keys, of a training that was saved at step 5,000."""

    def make(name, **changes):
        module = load_algorithm(REPOSITORY / "algorithms" / name)
        section = {**SECTIONS[name], **changes}
        if request.param == "several":
            section["learners"] = SHARED
        return module.ParameterServer(module.Config(section), saver(tmp_path), NullMetrics())

    def saved(name, before, **changes):
        first = make(name, **before)
        first.bridge().increment_global_t(5000)
        first.save_checkpoint()
        make(name, **changes).restore_latest_checkpoint()

    return saved


def test_epsilon_does_not_go_up(at_step_5000):
    with pytest.raises(ConfigurationError, match=r"epsilon .* up from 0.525 to 0.952.*begin"):
        at_step_5000("dqn", {}, exploration={"steps": 100_000})


def test_a_new_schedule_of_epsilon_has_a_beginning(at_step_5000, caplog):
    again = {"begin": 5000, "start": 0.8, "steps": 1000}
    at_step_5000("dqn", {}, exploration=again)
    assert "epsilon (exploration) was 0.525 and is 0.8 now" in caplog.text


@pytest.mark.parametrize("name", ["sac", "ddpg"])
@pytest.mark.parametrize("keys", [{"learning_starts": 10_000}, {"random_steps": 10_000}])
def test_actions_do_not_become_random_again(at_step_5000, name, keys):
    with pytest.raises(ConfigurationError, match=r"random_steps\) would go up from 0 to 1"):
        at_step_5000(name, {}, **keys)
    at_step_5000(name, {}, learning_starts=10_000, random_steps=100)
