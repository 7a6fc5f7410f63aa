"""A worker whose connections train and evaluate side by side."""

import pytest
from served_worker import BinaryClient, Oracle, encoded

from relaax.algorithm_base import AgentBase, EvaluatedPolicy, Evaluation, EvaluatorBase
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode, Hello, Metric
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED

MODE, SAMPLES = Evaluation.DETERMINISTIC, Evaluation.STOCHASTIC


class EvaluatingOracle(Oracle, EvaluatorBase):
    """An oracle that is asked for the policies of its slots; a test changes the newest one."""

    def __init__(self):
        super().__init__()
        self.newest = EvaluatedPolicy(5, 500)
        self._of_slot = {}

    def act(self, transitions, states, finals):
        self._of_slot.update((slot, self.newest) for slot in transitions.started.tolist())
        return super().act(transitions, states, finals)

    def policies(self, slots):
        return [self._of_slot[slot] for slot in slots.tolist()]


class TrainingOracle(Oracle):
    """An oracle that has evaluators."""

    def __init__(self):
        super().__init__()
        self.evaluators = {}

    def evaluator(self, evaluation):
        assert evaluation not in self.evaluators
        return self.evaluators.setdefault(evaluation, EvaluatingOracle())


@pytest.fixture(name="training")
def _training():
    return TrainingOracle()


@pytest.fixture(name="served")
def _served(serve, training):
    return serve(training)


def scores(served):
    """The values of evaluations, by name: the score, and its place in the chart."""
    found = {}
    for name, y, x in served.stored.values:
        if name.startswith("evaluation/"):
            found.setdefault(name.removeprefix("evaluation/"), []).append((y, x))
    return found


def test_steps_of_an_evaluation_reach_the_evaluator_alone(served, training):
    learning = BinaryClient(served)
    evaluating = BinaryClient(served, environments=2, evaluate=MODE)
    learning.ask([0], [START], [0.0], [1.0])
    evaluating.ask([0, 1], [START, START], [0.0, 0.0], [2.0, 3.0])
    learning.ask([0], [0], [4.0], [5.0])
    evaluating.ask([0, 1], [0, 0], [6.0, 7.0], [8.0, 9.0])
    assert training.reported == {0: [("start", 1.0), ("reward", 4.0), ("state", 5.0)]}
    assert training.evaluators[MODE].reported == {
        0: [("start", 2.0), ("reward", 6.0), ("state", 8.0)],
        1: [("start", 3.0), ("reward", 7.0), ("state", 9.0)],
    }
    assert served.load == 3


def test_messages_that_arrive_together_are_answered_by_whom_they_are_for(served, training):
    clients = [
        BinaryClient(served, evaluate=evaluate) for evaluate in (None, MODE, SAMPLES, MODE, None)
    ]
    for number, client in enumerate(clients):
        client.connection.send_now(encoded([0], [START], [0.0], [float(number)]))
    seen = [client.answer().actions.tolist()[0][1] for client in clients]
    assert seen == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert training.evaluators[MODE].sizes == [2]
    assert training.evaluators[SAMPLES].sizes == [1]
    assert training.sizes == [2]


def test_a_score_belongs_to_the_version_that_the_episode_began_with(served, training):
    client = BinaryClient(served, environments=2, evaluate=MODE)
    client.ask([0, 1], [START, START], [0.0, 0.0], [1.0, 1.0])
    training.evaluators[MODE].newest = EvaluatedPolicy(8, 800)
    client.ask([0], [TERMINATED | START], [2.0], [1.0])
    client.ask([0], [TERMINATED], [3.0])
    client.ask([1], [TRUNCATED | FINAL], [4.0], (), [1.0])
    assert scores(served) == {
        "reward": [(2.0, 500), (3.0, 800), (4.0, 500)],
        "length": [(1, 500), (1, 800), (1, 500)],
        "reward by version": [(2.0, 5), (3.0, 8), (4.0, 5)],
        "episode by version episode_length": [(1, 5), (1, 8), (1, 5)],
        "episode by version episode_return": [(2.0, 5), (3.0, 8), (4.0, 5)],
    }
    assert served.stored.of("episode/reward") == []


def test_a_score_of_a_version_by_the_learners_count_is_one_of_that(served, training):
    client = BinaryClient(served, evaluate=MODE)
    training.evaluators[MODE].newest = EvaluatedPolicy(8, 800, by_learner=True)
    client.ask([0], [START], [0.0], [1.0])
    client.ask([0], [TERMINATED], [3.0])
    assert scores(served) == {
        "reward": [(3.0, 800)],
        "length": [(1, 800)],
        "reward by iteration": [(3.0, 8)],
        "episode by iteration episode_length": [(1, 8)],
        "episode by iteration episode_return": [(3.0, 8)],
    }


def tell(client, name, y, environment=None):
    client.connection.send(binary.encode_metric(Metric(f"episode_info/{name}", y, environment)))


def test_a_number_of_an_environments_own_belongs_to_the_version_that_played_the_episode(
    served, training
):
    client = BinaryClient(served, environments=2, evaluate=MODE)
    client.ask([0, 1], [START, START], [0.0, 0.0], [1.0, 1.0])
    training.evaluators[MODE].newest = EvaluatedPolicy(8, 800)
    tell(client, "won", 1.0, 0.0)
    tell(client, "won", 0.25, 1.0)
    client.ask([0], [TERMINATED | START], [2.0], [1.0])
    tell(client, "won", 0.0)  # the first environment
    client.ask([0], [TERMINATED], [3.0])
    client.ask([1], [TRUNCATED | FINAL], [4.0], (), [1.0])
    found = scores(served)
    assert found["episode by version won"] == [(1.0, 5), (0.0, 8), (0.25, 5)]
    assert found["client episode_info/won"] == [(1.0, 500), (0.0, 800), (0.25, 500)]
    names = [name for name, _, _ in served.stored.values if "by version" in name]
    assert names[-1] == "evaluation/episode by version episode_return"


def test_the_numbers_of_an_episode_are_those_of_the_stage_that_its_client_names(served):
    client = BinaryClient(served, evaluate=MODE)
    client.ask([0], [START], [0.0], [1.0])
    tell(client, "won", 1.0)
    tell(client, "#stage", 2.0)
    client.ask([0], [TERMINATED], [2.0])
    found = scores(served)
    assert found["episode by version #2/won"] == [(1.0, 5)]
    assert found["episode by version #2/episode_return"] == [(2.0, 5)]
    assert not any("#stage" in name for name in found)


def test_a_number_of_an_episode_that_is_given_up_is_not_one_of_the_next(served):
    client = BinaryClient(served, evaluate=MODE)
    client.ask([0], [START], [0.0], [1.0])
    tell(client, "won", 1.0)
    client.ask([0], [START], [0.0], [1.0])
    client.ask([0], [TERMINATED], [2.0])
    assert "episode by version won" not in scores(served)


def test_the_numbers_of_episodes_that_are_learnt_from_are_metrics_of_clients(served):
    client = BinaryClient(served)
    client.ask([0], [START], [0.0], [1.0])
    tell(client, "won", 1.0)
    tell(client, "won", 0.5)  # the last one counts
    client.ask([0], [TERMINATED], [2.0])
    served.end()
    assert served.stored.of("client/episode_info/won") == [0.5]


@pytest.mark.parametrize(
    ("name", "environment", "reason"),
    [
        ("win rate", 0.0, "letters, digits and _"),
        ("episode_return", 0.0, "the service counts that itself"),
        ("won", 1.0, "below 1, and not 1"),
        ("won", 0.5, "below 1, and not 0.5"),
    ],
)
def test_a_number_without_a_proper_name_or_environment_is_refused(
    served, name, environment, reason
):
    client = BinaryClient(served, evaluate=MODE)
    client.ask([0], [START], [0.0], [1.0])
    tell(client, name, 1.0, environment)
    with pytest.raises(binary.Error, match=reason):
        client.ask([0], [TERMINATED], [2.0])


def test_an_episode_has_thirty_numbers_at_most(served):
    client = BinaryClient(served)
    client.ask([0], [START], [0.0], [1.0])
    for number in range(31):
        tell(client, f"n{number}", 1.0)
    with pytest.raises(binary.Error, match="more than 30 numbers"):
        client.ask([0], [TERMINATED], [2.0])


def test_an_episode_that_is_given_up_or_lost_has_no_score(served):
    client = BinaryClient(served, evaluate=MODE)
    client.ask([0], [START], [0.0], [1.0])
    client.ask([0], [0], [2.0], [1.0])
    client.ask([0], [START], [0.0], [1.0])
    client.ask([0], [0], [3.0], [1.0])
    client.close()
    served.turn_until(lambda: served.load == 0)
    assert scores(served) == {}


def test_a_policy_of_before_a_restart_has_a_step_and_no_version(served, training):
    client = BinaryClient(served, evaluate=MODE)
    training.evaluators[MODE].newest = EvaluatedPolicy(None, 500)
    client.ask([0], [START], [0.0], [1.0])
    client.ask([0], [TERMINATED], [2.0])
    assert scores(served) == {"reward": [(2.0, 500)], "length": [(1, 500)]}


def test_metrics_of_an_evaluating_client_are_kept_apart(served):
    client = BinaryClient(served, evaluate=MODE)
    client.connection.send(binary.encode_metric(Metric("fuel", 0.5, 7.0)))
    client.ask([0], [START], [0.0], [1.0])
    assert served.stored.values == [("evaluation/client fuel", 0.5, 7.0)]


def test_evaluators_are_closed_with_the_worker_before_the_agent(served, training):
    BinaryClient(served, evaluate=MODE)
    served.end()
    assert training.evaluators[MODE].is_closed
    assert training.is_closed


def refusal_of(served):
    connection = served.connect()
    connection.send(binary.encode_hello(Hello("run", "test", evaluate=SAMPLES)))
    payload = served.turn_until(connection.receive_now)
    with pytest.raises(binary.Error) as refused:
        binary.decode_welcome(payload)
    return refused.value


def test_an_agent_without_evaluators_refuses_in_words(serve):
    served = serve()
    error = refusal_of(served)
    assert (error.code, "cannot evaluate" in error.text) == (ErrorCode.MISMATCH, True)
    assert BinaryClient(served).ask([0], [START], [0.0], [1.0]).actions.tolist() == [[0.0, 1.0]]


class Following(AgentBase):
    """An algorithm's own agent of one environment."""

    def __init__(self, number):
        self.number, self.evaluation, self.is_closed = number, None, False

    def act(self, state):
        return self.number

    def reward_and_act(self, reward, state):
        return self.number

    def reward_and_reset(self, reward):
        pass

    def close(self):
        self.is_closed = True


class Willing(Following):
    """One that can evaluate."""

    def evaluate(self, evaluation):
        self.evaluation = evaluation

    def policy(self):
        return EvaluatedPolicy(3, 300)


def test_an_agent_of_one_environment_is_told_before_all_else(serve_separately):
    made = []

    def make(number):
        made.append(Willing(number))
        return made[-1]

    served = serve_separately(make)
    learning = BinaryClient(served)
    client = BinaryClient(served, evaluate=SAMPLES)
    assert client.ask([0], [START], [0.0], [1.0]).actions.tolist() == [1]
    client.ask([0], [TERMINATED], [2.0])
    assert learning.ask([0], [START], [0.0], [1.0]).actions.tolist() == [0]
    assert [agent.evaluation for agent in made] == [None, SAMPLES]
    assert scores(served)["reward by version"] == [(2.0, 3)]


def test_an_agent_that_knows_nothing_of_it_is_closed_and_its_connection_refused(serve_separately):
    made = []

    def make(number):
        made.append(Following(number))
        return made[-1]

    error = refusal_of(serve_separately(make))
    assert (error.code, "cannot evaluate" in error.text) == (ErrorCode.MISMATCH, True)
    assert [agent.is_closed for agent in made] == [True]
