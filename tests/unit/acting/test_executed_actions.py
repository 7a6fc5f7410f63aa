"""Environments report the action that they executed, which may be another one than was sent."""

import numpy as np
import pytest
from learning_parts import SMALL, SMALL_COLUMNS, Driven, Kept, Stored, only, report, small_policy

from relaax.acting.actor import Actor
from relaax.acting.agent import SingleAgent
from relaax.acting.executed_actions import OTHERS, ExecutedActions
from relaax.acting.preprocessor import Preprocessor
from relaax.errors import InvalidState
from relaax.learning.action_units import ActionUnits
from relaax.learning.distributions import Categorical
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.rollouts import RolloutStore
from relaax.learning.steps import StepRecorder
from relaax.spaces import actions_differ, box, discrete
from relaax.steps import EXECUTED, FINAL, START, TERMINATED, TRUNCATED, read_transitions

CHOICES = discrete(2)
BITS = {"type": "MultiBinary", "shape": [3]}
GEARS = {"type": "MultiDiscrete", "nvec": [3, 2]}
TORQUES = box("float32", (2,))
UNITS = ActionUnits([-0.1, -2], [0.1, 2])


class Acting(Driven):
    """An actor of the small network in one environment, and what it was sent last."""

    def __init__(self, store):
        self.kept, self.stored, self.action = Kept(), Stored(), None
        super().__init__(
            Actor(
                preprocessor=Preprocessor((2,), 1),
                policy=small_policy(),
                model=NumpyPolicy(SMALL, Categorical(2)),
                distribution=Categorical(2),
                columns=SMALL_COLUMNS,
                rollouts=store,
                experience=self.kept,
                random=np.random.default_rng(7),
                executed=ExecutedActions(CHOICES, metrics=self.stored),
            )
        )
        self.slots = self.open(1)

    def step(self, flags, observations=(), executed=(), finals=()):
        actions = self.act(report(self.slots, [flags], [1.0], observations, finals, executed))
        self.action = actions[0] if len(actions) else None

    @property
    def other(self):
        return 1 - self.action


def test_a_rollout_says_in_which_steps_the_policys_own_action_was_executed():
    actor = Acting(RolloutStore(4, SMALL_COLUMNS))
    actor.step(START, [[0, 0]])
    chosen = []
    for number, differs in enumerate((False, True, True), start=1):
        chosen.append(actor.action)
        executed = [actor.other if differs else actor.action]
        actor.step(EXECUTED, [[number, 0]], executed)
    chosen.append(actor.action)
    actor.step(0, [[4, 0]])
    (rollout,) = actor.kept.rollouts
    assert only(rollout.on_policy) == [1, 0, 0, 1]
    assert only(rollout.valid) == [1, 1, 1, 1]
    assert only(rollout.actions) == chosen
    assert rollout.steps == 4


def test_what_was_executed_last_in_an_episode_is_taken_too():
    actor = Acting(RolloutStore(3, SMALL_COLUMNS))
    actor.step(START, [[0, 0]])
    actor.step(TERMINATED | START | EXECUTED, [[1, 0]], [actor.other])
    actor.step(TRUNCATED | FINAL | EXECUTED, (), [actor.other], finals=[[2, 0]])
    actor.step(START, [[3, 0]])
    (rollout,) = actor.kept.rollouts
    assert only(rollout.on_policy) == only(rollout.valid - [[1], [1], [0]]) == [0, 0, 0]


def test_what_learns_off_policy_is_given_the_action_that_was_executed():
    actor = Acting(StepRecorder(SMALL_COLUMNS))
    actor.step(START, [[0, 0]])
    expected = []
    for number, differs in enumerate((True, False, True), start=1):
        executed = actor.other if differs else actor.action
        expected.append(executed)
        actor.step(EXECUTED, [[number, 0]], [executed])
    steps = [batch.columns for batch in actor.kept.rollouts]
    assert [column["action"].item() for column in steps] == expected
    assert [column["on_policy"].item() for column in steps] == [False, True, False]


def test_what_stores_on_policy_keeps_the_action_that_was_chosen_and_says_so():
    actor = Acting(StepRecorder(SMALL_COLUMNS, is_on_policy=True))
    actor.step(START, [[0, 0]])
    chosen = actor.action
    actor.step(TERMINATED | EXECUTED, (), [actor.other])
    actor.step(START, [[1, 0]])
    (step,) = actor.kept.rollouts
    assert (step.columns["action"].item(), step.columns["on_policy"].item()) == (chosen, False)


def test_the_share_of_other_actions_is_a_metric_from_the_first_report_on():
    actor = Acting(RolloutStore(100, SMALL_COLUMNS))
    actor.step(START, [[0, 0]])
    actor.step(0, [[1, 0]])
    actor.step(EXECUTED, [[2, 0]], [actor.other])
    actor.step(EXECUTED, [[3, 0]], [actor.action])
    for number in (4, 5):
        actor.step(0, [[number, 0]])
    actor.close()
    assert [value for name, value in actor.stored.values if name == OTHERS] == [0.25]


def test_nothing_is_said_of_executed_actions_where_none_is_reported():
    actor = Acting(RolloutStore(2, SMALL_COLUMNS))
    for flags in (START, 0, 0, TERMINATED | START):
        actor.step(flags, [[0, 0]])
    actor.close()
    assert actor.stored.values == []


def test_an_agent_of_one_environment_takes_them():
    actor = Acting(RolloutStore(2, SMALL_COLUMNS))
    agent = SingleAgent(actor.agent, Stored())
    action = agent.act([0, 0])
    agent.executed(1 - action)
    action = agent.reward_and_act(1.0, [1, 0])
    agent.executed(action)
    agent.reward_and_act(1.0, [2, 0])
    (rollout,) = actor.kept.rollouts
    assert only(rollout.on_policy) == [0, 1]
    with pytest.raises(InvalidState, match="lies above the largest choice, 1"):
        agent.executed(2)


@pytest.mark.parametrize(
    ("space", "given", "expected"),
    [
        (CHOICES, np.array([1, 0], np.uint8), [1, 0]),
        (CHOICES, [1], [1]),
        (BITS, np.array([[True, False, True]]), [[1, 0, 1]]),
        (GEARS, [[2, 1]], [[2, 1]]),
        (TORQUES, [[0, 1]], [[0, 1]]),
        (TORQUES, np.float64([[0.05, -2]]), np.float32([[0.05, -2]])),
        (TORQUES, np.float32([[0.1, -2]]), [[UNITS.highest[0], -2]]),
        (box("float32", ()), [0.5], [0.5]),
    ],
)
def test_an_action_of_the_space_is_taken(space, given, expected):
    units = UNITS if space is TORQUES else None
    checked = ExecutedActions(space, units).check(given)
    np.testing.assert_array_equal(checked, expected)
    assert checked.dtype == (np.float32 if space["type"] == "Box" else np.int64)


@pytest.mark.parametrize(
    ("space", "given", "reason"),
    [
        (CHOICES, [2], "holds 2, which lies above the largest choice, 1"),
        (CHOICES, [-1], "holds -1, which lies below 0"),
        (CHOICES, np.array([2**64 - 1], np.uint64), "lies above the largest choice"),
        (CHOICES, [1.0], "dtype float64, and must be of integers"),
        (CHOICES, np.array([True]), "dtype bool, and must be of integers"),
        (CHOICES, [[1]], r"shape \[1\], not \[\]"),
        (CHOICES, [[1], [1, 2]], "no array of numbers"),
        (CHOICES, ["left"], "dtype <U4"),
        (CHOICES, [None], "dtype object"),
        (BITS, [[0, 1, 2]], "holds 2, which lies above the largest choice, 1"),
        (BITS, [[0, 1]], r"shape \[2\], not \[3\]"),
        (GEARS, [[2, 2]], "holds 2, which lies above the largest choice, 1"),
        (TORQUES, [[0.11, 0]], r"holds 0.11, which lies above action_high, 0.09"),
        (TORQUES, [[0, -2.5]], "holds -2.5, which lies below action_low, -2.0"),
        (TORQUES, [[np.nan, 0]], "holds nan, which is not finite"),
        (TORQUES, [[1e39, 0]], "which is not finite as a 32-bit float"),
        (TORQUES, [[0.05]], r"shape \[1\], not \[2\]"),
        (TORQUES, np.array([[True, True]]), "dtype bool, and must be of numbers"),
        (TORQUES, [[1j, 0]], "dtype complex128, and must be of numbers"),
    ],
)
def test_any_other_is_refused_by_name(space, given, reason):
    units = UNITS if space is TORQUES else None
    with pytest.raises(InvalidState, match=f"an executed action .*{reason}.*the server's action"):
        ExecutedActions(space, units).check(given)


@pytest.mark.parametrize("written", [3.14159, 3.141594])
def test_what_a_client_may_announce_as_a_bound_may_be_executed(written):
    """Both are announced as plus and minus pi, and written with fewer digits."""
    units = ActionUnits([-written, -np.inf], [written, np.inf])
    announced = ActionUnits([-np.pi, -np.inf], [np.pi, np.inf])
    assert not actions_differ(announced.space, units.space)
    checked = ExecutedActions(units.space, units).check(np.float32([[np.pi, 9], [-np.pi, -9]]))
    np.testing.assert_allclose(checked, [[np.pi, 9], [-np.pi, -9]], rtol=1e-6)
    assert (np.abs(checked[:, 0]) <= written).all()


def test_without_bounds_any_finite_number_is_taken():
    checked = ExecutedActions(TORQUES).check([[-1e30, 1e30]])
    np.testing.assert_array_equal(checked, np.float32([[-1e30, 1e30]]))


def test_actions_are_compared_as_they_were_sent_and_kept_in_the_policys_units():
    """Drawn beyond a bound, sent cut off there, and executed so: that is no other action."""
    executed = ExecutedActions(TORQUES, UNITS)
    slots = np.array([4, 7])
    flags = np.full(2, EXECUTED, np.uint8)
    read = read_transitions(slots, flags, np.zeros(2), np.ones(2, np.bool_))
    reported = executed.check(np.float64([[0.1, 1], [0.1, 1]]))
    drawn = np.float32([[7, 0.5], [1, 0.75]])
    others, actions = executed.others(read._replace(executed_actions=reported), drawn)
    assert others.tolist() == [7]
    np.testing.assert_allclose(actions, [[1, 0.5]], rtol=1e-6)
