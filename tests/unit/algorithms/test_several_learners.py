"""Learners that share gradients come to what one learner does with all of their batches."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from driven_learner import DrivenLearner
from processes import REPOSITORY
from transition_batches import COUNT, batch_of

from relaax.configuration.algorithm_loader import load_algorithm
from relaax.errors import BridgeError
from relaax.telemetry.metrics import NullMetrics

ACTIONS = 2
SECTION = {"state_size": [3], "hidden_layers": [4], "seed": 3}
NUMBERS = {**SECTION, "action_size": ACTIONS}

#: By the algorithm's name: its section, and the noise that a batch has for each of its transitions.
CASES = {
    "sac": (NUMBERS, (2, COUNT, ACTIONS)),
    "ddpg": (NUMBERS, (COUNT, ACTIONS)),
    "dqn": ({**SECTION, "action_size": ACTIONS, "target_every": 2}, (COUNT,)),
}


class NoSaver:
    """Keeps nothing."""

    def restore_latest(self):
        return None

    def location(self):
        return "nowhere"


class Losing:
    """A way to the parameter server on which gradient number ``lost`` is lost."""

    def __init__(self, bridge, lost):
        self._bridge, self._left = bridge, lost

    def pull(self, known=None, policy="default"):
        return self._bridge.pull(known)

    def push(self, update, policy="default"):
        self._left -= 1
        if self._left == 0:
            raise BridgeError("it is lost")
        return self._bridge.push(update)


def batch(name, seed):
    random, (_, noise) = np.random.default_rng(seed), CASES[name]
    actions = random.uniform(-0.9, 0.9, size=(COUNT, ACTIONS)).astype(np.float32)
    if name == "dqn":
        actions = random.integers(ACTIONS, size=COUNT).astype(np.int32)
    return batch_of(random, actions, random.normal(size=noise).astype(np.float32))


def joined(*batches):
    columns = [vars(each) for each in batches]
    return type(batches[0])(
        **{
            name: np.concatenate(
                [each[name] for each in columns], axis=1 if columns[0][name].ndim == 3 else 0
            )
            for name in columns[0]
            if name != "extras"
        }
    )


def learnt(learner):
    return {name: value for name, value in learner.state().items() if "adam" not in name}


@pytest.mark.parametrize("name", CASES)
def test_synchronous_gradients_are_those_of_one_large_batch(name):
    module = load_algorithm(REPOSITORY / "algorithms" / name).module
    section = CASES[name][0]
    alone = DrivenLearner(module.make_learner(module.Config(section), 3))
    config = module.Config({**section, "learners": {"count": 2}})
    server = module.ParameterServer(config, NoSaver(), NullMetrics())
    several = [
        DrivenLearner(module.make_learner(config, seed), server.bridge()) for seed in (3, 77)
    ]
    assert not any(learner.values() for learner in several)
    for number in range(3):
        batches = [batch(name, 10 * number + part) for part in range(2)]
        alone.step({"all": joined(*batches)})
        with ThreadPoolExecutor(2) as threads:
            pairs = zip(several, batches, strict=True)
            for done in [threads.submit(learner.step, {"all": part}) for learner, part in pairs]:
                done.result(60)
    for learner in several:
        for part, value in learnt(learner).items():
            np.testing.assert_allclose(value, learnt(alone)[part], atol=1e-4, err_msg=part)
    policy = alone.vector()
    np.testing.assert_allclose(server.bridge().pull().vector[: len(policy)], policy, atol=1e-4)


def test_asynchronous_gradients_are_updates_of_their_own():
    module = load_algorithm(REPOSITORY / "algorithms" / "dqn").module
    section = {**CASES["dqn"][0], "learners": {"count": 2, "gradients": "asynchronous"}}
    server = module.ParameterServer(module.Config(section), NoSaver(), NullMetrics())
    first, second = (
        DrivenLearner(module.make_learner(module.Config(section), seed), server.bridge())
        for seed in (3, 77)
    )
    first.step({"all": batch("dqn", 1)})
    second.step({"all": batch("dqn", 2)})
    assert server.bridge().pull().version.number == 2
    assert not np.array_equal(first.state()["policy"], second.state()["policy"])
    np.testing.assert_array_equal(second.state()["policy"], server.bridge().pull().vector)


def test_targets_follow_after_so_many_updates_of_all_learners():
    """Of Gorila: the second of two updates moves the target of each learner when it hears of it."""
    module = load_algorithm(REPOSITORY / "algorithms" / "dqn").module
    section = {**CASES["dqn"][0], "learners": {"count": 2, "gradients": "asynchronous"}}
    server = module.ParameterServer(module.Config(section), NoSaver(), NullMetrics())
    first, second = (
        DrivenLearner(module.make_learner(module.Config(section), 3), server.bridge())
        for _ in range(2)
    )
    initial = second.state()["target"]
    first.step({"all": batch("dqn", 1)})
    np.testing.assert_array_equal(first.state()["target"], initial)
    second.step({"all": batch("dqn", 2)})
    np.testing.assert_array_equal(second.state()["target"], server.bridge().pull().vector)
    first.step({"all": batch("dqn", 3)})  # the third update
    np.testing.assert_array_equal(first.state()["target"], first.state()["policy"])
    second.step({"all": batch("dqn", 4)})
    assert server.bridge().pull().version.number == 4


def test_a_gradient_that_waits_for_another_is_no_update_of_targets():
    module = load_algorithm(REPOSITORY / "algorithms" / "dqn").module
    learners = {"count": 2, "gradients": "asynchronous"}
    section = {**CASES["dqn"][0], "learners": learners, "combine_gradients": {"average_of": 4}}
    server = module.ParameterServer(module.Config(section), NoSaver(), NullMetrics())
    learner = DrivenLearner(module.make_learner(module.Config(section), 3), server.bridge())
    initial = learner.state()["target"]
    for number in range(7):
        assert learner.step({"all": batch("dqn", number)}).updates == 1
    np.testing.assert_array_equal(learner.state()["target"], initial)
    learner.step({"all": batch("dqn", 7)})
    np.testing.assert_array_equal(learner.state()["target"], learner.state()["policy"])


def test_a_learner_that_starts_again_goes_on_with_what_is_there():
    module = load_algorithm(REPOSITORY / "algorithms" / "dqn").module
    config = module.Config({**CASES["dqn"][0], "learners": {"count": 1}})
    server = module.ParameterServer(config, NoSaver(), NullMetrics())
    learner = DrivenLearner(module.make_learner(config, 3), server.bridge())
    for number in range(3):
        learner.step({"all": batch("dqn", number)})
    again = module.make_learner(config, 77)
    again.restore(learner.state())
    again.take(server.bridge().pull())
    np.testing.assert_array_equal(again.state()["policy"], server.bridge().pull().vector)
    np.testing.assert_array_equal(again.state()["target"], learner.state()["target"])


def test_targets_follow_after_as_many_updates_though_some_were_lost():
    module = load_algorithm(REPOSITORY / "algorithms" / "dqn").module
    config = module.Config({**CASES["dqn"][0], "learners": {"count": 1}})
    server = module.ParameterServer(config, NoSaver(), NullMetrics())
    losing = Losing(server.bridge(), lost=2)
    learner = DrivenLearner(module.make_learner(config, 3), losing)
    results = [learner.step({"all": batch("dqn", number)}) for number in range(3)]
    assert [result.updates > 0 for result in results] == [True, False, True]
    np.testing.assert_array_equal(learner.state()["target"], learner.state()["policy"])


def test_the_policy_of_td3_cannot_wait_among_several_learners():
    module = load_algorithm(REPOSITORY / "algorithms" / "ddpg").module
    with pytest.raises(ValueError, match="set policy_delay: 1"):
        module.Config({**NUMBERS, "twin": True, "learners": {"count": 2}})
