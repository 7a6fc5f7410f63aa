"""Another policy in each slot: its parameters, one evaluation for each, and its name with steps."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from learning_parts import (
    SMALL,
    SMALL_COLUMNS,
    Driven,
    Kept,
    Remembering,
    report,
    small_policy,
    small_values,
    unpack,
)
from processes import wait_for

from relaax.acting.actor import Actor
from relaax.acting.policies import NamedPolicies, PolicySource, PulledPolicies, VariantPolicies
from relaax.acting.preprocessor import Preprocessor
from relaax.algorithm_base import DEFAULT, EnvironmentInfo, EvaluatedPolicy
from relaax.learning.distributions import Categorical
from relaax.learning.exploration import NoNoise
from relaax.learning.exploration.ladder import SlotPlaces
from relaax.learning.rollouts import LOG_PROBABILITY, Columns, RolloutStore
from relaax.learning.rollouts.labels import (
    AGENT,
    GROUP,
    LABELS,
    POLICY_NAME,
    POLICY_STAMP,
    POLICY_VERSION,
    name_column,
    names_in,
)
from relaax.learning.steps import StepRecorder
from relaax.observations import mapped
from relaax.replay.step_batch import StepBatch
from relaax.steps import START, TERMINATED, AgentName

LABELLED = replace(
    SMALL_COLUMNS,
    extras=Columns.of(SMALL, Categorical(2), extras=[LOG_PROBABILITY, *LABELS]).extras,
)

#: Seeds of the parameters of policies, by name; the default policy has 5.
SEEDS = {"candidate0": 5, "candidate1": 8, "candidate2": 11}


class Parameters:
    """A parameter server with several policies, all of one version."""

    def __init__(self):
        self.asked, self.version = [], 3

    def pull(self, known=None, policy=DEFAULT):
        self.asked.append(policy)
        values = small_values(self.version, SEEDS[policy])
        return replace(values, vector=None) if known == values.version else values


class Population(Driven):
    """An actor with the candidate of each environment's place."""

    def __init__(
        self, name_of=lambda seat: f"candidate{seat.place}", recorder=None, pins_episodes=False
    ):
        self.kept, self.model, self.parameters = Kept(), Remembering(), Parameters()
        policy, places = small_policy(), SlotPlaces()
        self.actor = Actor(
            preprocessor=Preprocessor((2,)),
            policy=policy,
            model=self.model,
            distribution=Categorical(2),
            columns=SMALL_COLUMNS if recorder is None else LABELLED,
            rollouts=recorder or RolloutStore(2, SMALL_COLUMNS),
            experience=self.kept,
            random=np.random.default_rng(7),
            exploration=NoNoise(Categorical(2)),
            places=places,
            policies=NamedPolicies(name_of, self.policies_of(policy, pins_episodes), places),
            stamp=slice(2),
        )
        super().__init__(self.actor)

    def policies_of(self, default, pins_episodes):
        return PulledPolicies(
            default,
            lambda name: PolicySource(self.parameters, name),
            unpack,
            interval_s=0.01,
            pins_episodes=pins_episodes,
        )

    def step(self, slots, flags, states=None, agents=()):
        seen = np.zeros((len(slots), 2)) if states is None else states
        steps = report(slots, [flags] * len(slots), [1.0] * len(slots), seen)
        return self.act(replace(steps, agents=agents))


@pytest.fixture(name="population")
def _population():
    with closing(Population()) as population:
        yield population


def modes(seed, states):
    """The most probable actions of the policy of ``small_values`` with this seed."""
    arrays = unpack(small_values(seed=seed).vector).arrays
    hidden = np.maximum(states @ arrays["dense0/kernel"] + arrays["dense0/bias"], 0)
    return (hidden @ arrays["policy/kernel"] + arrays["policy/bias"]).argmax(axis=1)


def test_each_slot_has_the_actions_of_its_own_policy(population):
    slots = population.open(3)
    population.step(slots, START)
    states = np.random.default_rng(1).normal(size=(32, 3, 2)).astype(np.float32)
    for seen in states:
        expected = [modes(seed, seen)[place] for place, seed in enumerate(SEEDS.values())]
        np.testing.assert_array_equal(population.step(slots, 0, seen), expected)


def test_slots_with_one_policy_are_evaluated_in_one_batch():
    with closing(Population(lambda seat: f"candidate{seat.place % 2}")) as population:
        population.step(population.open(5), START)
        assert sorted(population.model.sizes) == [2, 3]


def test_the_name_is_asked_for_when_an_episode_begins_and_at_no_other_moment():
    names = iter(["candidate1", "candidate2"])
    with closing(Population(lambda seat: next(names))) as population:
        slots = population.open(1)
        population.step(slots, START)
        population.step(slots, 0)
        population.step(slots, TERMINATED | START)
        assert list(names) == []


def test_a_slot_counts_the_episodes_that_were_begun_there_before():
    seen = []

    def name_of(seat):
        seen.append((seat.place, seat.episode))
        return f"candidate{(seat.place + seat.episode) % 3}"

    with closing(Population(name_of)) as population:
        slots = population.open(2)
        population.step(slots, START)
        population.step(slots, TERMINATED | START)
        population.actor.close_slots(slots[:1])
        population.step(population.open(1), START)
    assert seen == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)]


def test_the_name_may_be_that_of_the_place_among_all_that_train(population):
    slots = population.open(1)
    place = EnvironmentInfo("", None, None, number=0, seed=0, place=lambda: 2)
    population.actor.connected(slots, [place])
    population.step(slots, START)
    assert population.parameters.asked[0] == "candidate2"


def test_parameters_are_asked_for_before_the_first_episode_and_from_then_on(population):
    slots = population.open(3)
    population.step(slots, START)
    assert population.parameters.asked[:3] == list(SEEDS)
    assert population.actor.policies(slots) == [EvaluatedPolicy(3, 0)] * 3
    population.parameters.version = 4
    newest = [EvaluatedPolicy(4, 0)] * 3
    wait_for(lambda: population.actor.policies(slots) == newest, "newer parameters")


def test_an_episode_may_be_played_to_its_end_with_the_parameters_that_it_began_with():
    with closing(Population(lambda seat: "candidate0", pins_episodes=True)) as population:
        slots = population.open(3)
        population.step(slots, START)
        population.parameters.version = 4
        later = population.open(1)
        newer, older = EvaluatedPolicy(4, 0), EvaluatedPolicy(3, 0)

        def begins_with_newer():
            population.step(later, START)
            return population.actor.policies(later) == [newer]

        wait_for(begins_with_newer, "newer parameters")
        population.step(slots[:1], TERMINATED | START)
        assert population.actor.policies(slots) == [newer, older, older]
        population.model.sizes.clear()
        population.step(np.concatenate([slots, later]), 0)
        assert sorted(population.model.sizes) == [2, 2]


def test_a_policy_that_no_slot_has_any_more_is_asked_for_no_longer(population):
    slots = population.open(2)
    population.step(slots, START)
    population.close_slots(slots[1:])
    population.parameters.asked.clear()
    asked = population.parameters.asked
    wait_for(lambda: asked.count("candidate0") > 2, "further calls")
    assert asked.count("candidate1") <= 1  # that was under way


def test_the_default_policy_is_the_actors_own(population):
    with closing(Population(lambda seat: DEFAULT)) as alone:
        alone.step(alone.open(2), START)
        assert alone.parameters.asked == []


class TestLabels:
    """The columns that say whose steps these are."""

    AGENTS = (AgentName("left", "red"), AgentName("right", "blue"))

    @pytest.mark.parametrize(
        "make", [lambda: StepRecorder(LABELLED), lambda: RolloutStore(1, LABELLED)]
    )
    def test_policies_and_agents_are_recorded_with_each_step(self, make):
        def of_agent(seat):
            return "candidate1" if seat.agent.group == "red" else "candidate2"

        with closing(Population(of_agent, make())) as population:
            slots = population.open(2)
            population.step(slots, START, agents=self.AGENTS)
            population.step(slots, 0)
            columns = self.joined(population.kept.rollouts)
        assert names_in(columns[POLICY_NAME]).tolist() == ["candidate1", "candidate2"]
        assert columns[POLICY_VERSION].tolist() == [3, 3]
        vectors = [small_values(seed=SEEDS[f"candidate{number}"]).vector for number in (1, 2)]
        np.testing.assert_array_equal(columns[POLICY_STAMP], [each[:2] for each in vectors])
        assert names_in(columns[AGENT]).tolist() == ["left", "right"]
        assert names_in(columns[GROUP]).tolist() == ["red", "blue"]

    @staticmethod
    def joined(batches):
        extras = [
            batch.columns if isinstance(batch, StepBatch) else mapped(lambda x: x[0], batch.extras)
            for batch in batches
        ]
        return {name: np.concatenate([each[name] for each in extras]) for name in LABELS}

    def test_agents_without_names_have_empty_ones(self):
        with closing(Population(recorder=StepRecorder(LABELLED))) as population:
            slots = population.open(2)
            population.step(slots, START)
            population.step(slots, 0)
            columns = self.joined(population.kept.rollouts)
        assert names_in(columns[AGENT]).tolist() == ["", ""]
        assert names_in(columns[POLICY_NAME]).tolist() == ["candidate0", "candidate1"]

    def test_a_name_that_is_too_long_for_its_column_is_refused(self):
        assert names_in(name_column(["ä" * 32])).tolist() == ["ä" * 32]
        with pytest.raises(ValueError, match="has 66 bytes, at most 64"):
            name_column(["ä" * 33])


class Variants(Population):
    """A population whose candidates are made of the default policy, and pulled from nowhere."""

    def policies_of(self, default, pins_episodes):
        self.default, self.made = default, []

        def variant_of(name, vector):
            self.made.append((name, vector[0]))
            return small_values(seed=SEEDS.get(name, 5)).vector

        return VariantPolicies(default, variant_of, unpack)


def test_variants_are_made_once_of_each_version_of_the_default_policy():
    names = ["one", "two", "one", DEFAULT]
    with closing(Variants(lambda seat: names[seat.place])) as population:
        slots = population.open(4)
        population.step(slots, START)
        population.step(slots, 0)
        first = small_values().vector[0]
        assert population.made == [("one", first), ("two", first)]
        assert sorted(population.model.sizes[:3]) == [1, 1, 2]
        population.default.publish(small_values(4, seed=6))
        population.step(slots[:1], TERMINATED | START)
        assert population.made[2:] == [("one", small_values(seed=6).vector[0])]
        newest, before = EvaluatedPolicy(4, 0), EvaluatedPolicy(0, 0)
        assert population.actor.policies(slots) == [newest, before, before, before]
        assert population.parameters.asked == []


def test_a_variant_acts_with_the_parameters_that_are_made_for_its_name():
    with closing(Variants(lambda seat: f"candidate{seat.place}")) as population:
        slots = population.open(3)
        population.step(slots, START)
        states = np.random.default_rng(1).normal(size=(16, 3, 2)).astype(np.float32)
        for seen in states:
            expected = [modes(seed, seen)[place] for place, seed in enumerate(SEEDS.values())]
            np.testing.assert_array_equal(population.step(slots, 0, seen), expected)
