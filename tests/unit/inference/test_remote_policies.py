"""Steps that another process's policies have chosen are recorded with their names and versions."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from learning_parts import SMALL, SMALL_COLUMNS, Driven, Kept, report, small_policy, unpack

from relaax.acting.actor import Actor
from relaax.acting.evaluator import EvaluationParts
from relaax.acting.policies import NamedPolicies
from relaax.acting.preprocessor import Preprocessor
from relaax.acting.remote import MOST_POLICIES, LocalInference, RemoteModel, forms_of
from relaax.algorithm_base import EvaluatedPolicy, Evaluation, Version
from relaax.inference.batching import Batching
from relaax.learning.distributions import Categorical
from relaax.learning.exploration.ladder import SlotPlaces
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.rollouts import LOG_PROBABILITY, Columns, RolloutStore
from relaax.learning.rollouts.labels import POLICY_NAME, POLICY_VERSION, names_in
from relaax.steps import START, TERMINATED

LABELLED = replace(
    SMALL_COLUMNS,
    extras=Columns.of(
        SMALL, Categorical(2), extras=[LOG_PROBABILITY, POLICY_NAME, POLICY_VERSION]
    ).extras,
)


class Counting:
    """``PoliciesByName`` with one set of parameters, which notes the names that are kept."""

    def __init__(self):
        self.kept = set()

    def of(self, name):
        return small_policy()

    def keep(self, names):
        self.kept = set(names)

    def check(self):
        pass

    def close(self):
        pass


class InThisProcess:
    """An ``Inference`` without a network between."""

    def __init__(self, local):
        self._batching = Batching(local, 128)

    def expect(self, forms):
        assert forms == self._batching.forms()

    def choose(self, question):
        return self._batching.choose(question)

    def close(self):
        pass


@pytest.fixture
def remote(local):
    return RemoteModel(InThisProcess(local), local.forms())


def test_each_slot_is_recorded_with_the_name_and_version_of_its_own_policy(remote):
    kept, names = Kept(), ["second", "first", "default"]
    actor = Actor(
        preprocessor=Preprocessor((2,)),
        policy=remote,
        model=remote,
        distribution=Categorical(2),
        columns=LABELLED,
        rollouts=RolloutStore(1, LABELLED),
        experience=kept,
        random=np.random.default_rng(7),
        policies=NamedPolicies(lambda seat: names[seat.place], remote, SlotPlaces()),
    )
    with closing(actor):
        driven = Driven(actor)
        slots = driven.open(3)
        for flags in (START, 0):
            driven.act(report(slots, [flags] * 3, [0.0] * 3, np.ones((3, 2))))
    recorded = [
        (names_in(each.extras[POLICY_NAME])[0, 0], each.extras[POLICY_VERSION][0, 0])
        for each in kept.rollouts[:3]
    ]
    assert recorded == [("second", 11), ("first", 8), ("default", 0)]


class Moving(InThisProcess):
    """Answers with a version that a test moves."""

    version = Version(5)

    def choose(self, question):
        return replace(super().choose(question), version=self.version)


def test_an_episode_is_one_of_a_version_where_the_other_process_kept_to_it(local):
    inference = Moving(local)
    remote = RemoteModel(inference, local.forms())
    actor = Actor(
        preprocessor=Preprocessor((2,)),
        policy=remote,
        model=remote,
        distribution=Categorical(2),
        columns=SMALL_COLUMNS,
        rollouts=RolloutStore(1, SMALL_COLUMNS),
        experience=Kept(),
        random=np.random.default_rng(7),
        evaluation=EvaluationParts(
            source=None, unpack=unpack, make_preprocessor=lambda _: Preprocessor((2,))
        ),
    )
    evaluator = actor.evaluator(Evaluation.DETERMINISTIC)
    driven = Driven(evaluator)
    slots = driven.open(2)

    def play(*flags):
        driven.act(report(slots, flags, [0.0] * 2, np.ones((2, 2))))
        return evaluator.policies(slots)

    assert play(START, START) == [EvaluatedPolicy(5, None, by_learner=True)] * 2
    inference.version = Version(6)
    assert play(0, TERMINATED | START) == [None, EvaluatedPolicy(6, None, by_learner=True)]


def test_exploration_goes_by_the_global_step_of_the_server(remote, ask):
    assert remote.global_t == 0
    question = ask(1)
    remote.choose(
        remote.current.parameters, question.observations, question.recurrent_state, question.noise
    )
    assert remote.global_t == 321


def test_parameters_of_this_process_are_no_policy_of_another(remote):
    with pytest.raises(TypeError, match="another process has the parameters"):
        remote.choose(
            small_policy().current.parameters,
            np.zeros((1, 2), np.float32),
            np.zeros((2, 1, 0), np.float32),
            np.zeros((1, 2), np.float32),
        )


def test_a_server_keeps_the_policies_that_were_asked_for_last(ask):
    policies = Counting()
    forms = forms_of(SMALL_COLUMNS, Categorical(2))
    local = LocalInference(NumpyPolicy(SMALL, Categorical(2)), policies, forms, lambda: 0)
    names = [f"policy {number}" for number in range(MOST_POLICIES + 1)]
    for name in [*names[:2], names[0], *names[2:]]:
        local.choose(ask(1, policy=name))
    assert names[0] in policies.kept
    assert names[1] not in policies.kept
    assert len(policies.kept) == MOST_POLICIES
