"""A worker whose environments observe several arrays by name."""

from types import SimpleNamespace

import numpy as np
import pytest
from json_requests import Act, RewardAndAct
from served_worker import BinaryClient, JsonClient, send

from relaax.algorithm_base import AgentBase, BatchAgentBase
from relaax.errors import InvalidState
from relaax.observations import count_of, mapped
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode
from relaax.spaces import box, discrete
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps

CUT = TRUNCATED | FINAL
ROBOT = {
    "type": "Dict",
    "spaces": {"camera": box("uint8", (2, 2)), "arm/angle": box("float32", (1,))},
}


class Looking(BatchAgentBase):
    """Answers each environment with the first byte of its camera; keeps what it is given."""

    def __init__(self):
        self.states, self.finals, self.checked = [], [], []

    def open(self, slots):
        pass

    def close_slots(self, slots):
        pass

    def check(self, states):
        self.checked.append(count_of(states))
        if isinstance(states, np.ndarray):
            raise InvalidState("there are no names")
        if not isinstance(states, dict):
            names = states[0].keys()
            states = {name: np.array([state[name] for state in states]) for name in names}
            states["camera"] = states["camera"].astype(np.uint8)
            states["arm/angle"] = states["arm/angle"].astype(np.float32)
        if sorted(states) != ["arm/angle", "camera"]:
            raise InvalidState(f"there are {sorted(states)}")
        return {name: states[name] for name in ("camera", "arm/angle")}

    def act(self, transitions, states, finals):
        self.states.append(mapped(np.copy, states))
        self.finals.append(mapped(np.copy, finals))
        return states["camera"][:, 0, 0].astype(np.int64) if len(transitions.acting) else []

    def close(self):
        pass


def sees(*cameras):
    return {
        "camera": np.stack([np.full((2, 2), camera, np.uint8) for camera in cameras]),
        "arm/angle": np.array([[camera / 2] for camera in cameras], np.float32),
    }


class Robots(BinaryClient):
    """Some environments with cameras and arms."""

    def tell(self, environments, flags, states=(), finals=(), rewards=None):
        count = len(environments)
        rewards = np.zeros(count) if rewards is None else np.array(rewards)
        steps = Steps(np.array(environments), np.array(flags, np.uint8), rewards, states, finals)
        send(self._served, self.connection, binary.encode_steps(steps))

    def refusal(self):
        with pytest.raises(binary.Error) as said:
            self.answer()
        return said.value


@pytest.fixture(name="looking")
def _looking():
    return Looking()


def test_an_agent_gets_arrays_by_name_and_their_last_ones(serve, looking):
    robots = Robots(serve(looking, runs=True), 2)
    assert robots.ask([0, 1], [START, START], sees(1, 2)).actions.tolist() == [1, 2]
    assert robots.ask([1, 0], [0, CUT | START], sees(3, 4), sees(9)).actions.tolist() == [3, 4]
    assert looking.states[-1]["arm/angle"].tolist() == [[1.5], [2.0]]
    assert looking.finals[-1]["camera"].tolist() == [[[9, 9], [9, 9]]]
    assert looking.finals[-1]["arm/angle"].tolist() == [[4.5]]


def test_last_states_of_terminated_episodes_are_left_out(serve, looking):
    robots = Robots(serve(looking, runs=True), 3)
    robots.ask([0, 1, 2], [START] * 3, sees(1, 2, 3))
    robots.ask([0, 1, 2], [TERMINATED | FINAL, CUT, TERMINATED | FINAL], (), sees(7, 8, 9))
    assert looking.finals[-1]["camera"][:, 0, 0].tolist() == [8]


def test_observations_of_several_connections_are_joined_and_checked_at_once(serve, looking):
    served = serve(looking)
    first, second = Robots(served, 2), Robots(served, 1)
    first.tell([0, 1], [START, START], sees(1, 2))
    second.tell([0], [START], dict(reversed(sees(3).items())))
    assert second.answer().actions.tolist() == [3]
    assert first.answer().actions.tolist() == [1, 2]
    assert looking.checked == [3]


def test_other_names_refuse_their_own_connection_alone(serve, looking):
    served = serve(looking)
    good, bad, unnamed = (Robots(served, 1) for _ in range(3))
    good.tell([0], [START], sees(1))
    bad.tell([0], [START], {"camera": sees(2)["camera"]})
    unnamed.tell([0], [START], np.zeros((1, 2), np.float32))
    assert good.answer().actions.tolist() == [1]
    assert bad.refusal().code == ErrorCode.MISMATCH
    assert unnamed.refusal().code == ErrorCode.MISMATCH


def test_names_of_another_type_are_refused_while_an_environment_is_there(serve, looking):
    served = serve(looking, runs=True)
    first, second = Robots(served, 1), Robots(served, 1)
    first.ask([0], [START], sees(1))
    second.tell([0], [START], {**sees(1), "arm/angle": np.zeros((1, 1))})
    assert "'arm/angle': float64[1]" in second.refusal().text


def test_states_of_version_1_are_dicts(serve, looking):
    client = JsonClient(serve(looking, runs=True))
    client.tell(Act({"camera": [[5, 0], [0, 0]], "arm/angle": [0.5]}))
    assert client.action() == 5
    client.tell(RewardAndAct(1.0, {"camera": np.full((2, 2), 6, np.uint8), "arm/angle": [0]}))
    assert client.action() == 6


class Noting(AgentBase):
    """Keeps its states; acts with the camera's first byte."""

    def __init__(self, number):
        self.states, self.environments = [], []

    def connected(self, environment):
        assert self.states == []
        self.environments.append(environment)

    def act(self, state):
        self.states.append(state)
        return int(np.asarray(state["camera"])[0, 0])

    def reward_and_act(self, reward, state):
        return self.act(state)

    def reward_and_reset(self, reward):
        pass


@pytest.fixture(name="agents")
def _agents():
    return []


@pytest.fixture(name="make")
def _make(agents):
    def make(number):
        agents.append(Noting(number))
        return agents[-1]

    return make


def test_an_agent_of_one_environment_gets_a_dict_for_each_state(serve_separately, make, agents):
    robots = Robots(serve_separately(make, runs=True), 2)
    assert robots.ask([0, 1], [START, START], sees(1, 2)).actions.tolist() == [1, 2]
    assert robots.ask([0, 1], [CUT, 0], sees(4), sees(3)).actions.tolist() == [4]
    first, second = agents
    assert [state["arm/angle"].tolist() for state in first.states] == [[0.5], [1.5]]
    assert [state["camera"].shape for state in second.states] == [(2, 2), (2, 2)]


class TestWhatAnAgentMayKnow:
    def test_an_agent_is_told_of_its_environment_before_the_first_state(
        self, serve_separately, make, agents
    ):
        served = serve_separately(make, runs=True)
        hello = {"observation_space": ROBOT, "action_space": discrete(9)}
        robots = [Robots(served, environments, **hello) for environments in (2, 1)]
        robots[0].ask([0, 1], [START, START], sees(1, 2))
        told = [environment for agent in agents for environment in agent.environments]
        assert [environment.number for environment in told] == [0, 1, 0]
        assert len({environment.seed for environment in told}) == 3
        assert all(environment.name == "test" for environment in told)
        assert all(environment.observation_space == ROBOT for environment in told)
        assert all(environment.action_space == discrete(9) for environment in told)

    def test_in_version_1_no_more_than_a_number_and_a_seed_is_known(
        self, serve_separately, make, agents
    ):
        client = JsonClient(serve_separately(make, runs=True))
        client.tell(Act({"camera": [[5]]}))
        assert client.action() == 5
        (environment,) = agents[0].environments
        assert (environment.name, environment.number) == ("", 0)
        assert (environment.observation_space, environment.action_space) == (None, None)

    def test_a_batch_agent_is_told_by_slots(self, serve, looking):
        told = {}

        def connected(slots, environments):
            told.update(zip(slots.tolist(), environments, strict=True))

        looking.connected = connected
        served = serve(looking, runs=True)
        robots = [Robots(served, environments) for environments in (2, 2)]
        robots[0].ask([0, 1], [START, START], sees(1, 2))
        assert {slot: environment.number for slot, environment in told.items()} == {
            0: 0, 1: 1, 2: 0, 3: 1,
        }  # fmt: skip
        assert len({environment.seed for environment in told.values()}) == 4


def configuration(observation_space=None, action_space=None):
    return SimpleNamespace(
        observation_space=lambda: observation_space, action_space=lambda: action_space
    )


@pytest.mark.parametrize(
    ("spaces", "reason"),
    [
        ({"camera": box("uint8", (2, 2))}, "'arm/angle' is missing"),
        ({**ROBOT["spaces"], "speed": box("float32", ())}, "'speed' is not asked for"),
        ({**ROBOT["spaces"], "arm/angle": box("float32", (3,))}, "'arm/angle' is .*instead of"),
    ],
)
def test_a_hello_with_other_names_is_refused_with_a_line_that_names_them(
    serve, looking, spaces, reason
):
    served = serve(looking, runs=True, config=configuration(ROBOT))
    announced = {"type": "Dict", "spaces": spaces}
    with pytest.raises(binary.Error, match=f"the observations of test do not fit: {reason}") as no:
        Robots(served, 1, observation_space=announced)
    assert no.value.code == ErrorCode.MISMATCH
    nested = {"camera": spaces["camera"], "arm": {"type": "Dict", "spaces": {}}}
    nested["arm"]["spaces"]["angle"] = box("float32", (1,))
    Robots(served, 1, observation_space={"type": "Dict", "spaces": nested})


class TestActionsThatDoNotFit:
    def test_the_algorithm_is_named_to_the_client_which_does_not_come_again(self, serve, looking):
        options = {"config": configuration(None, discrete(5)), "algorithm_name": "gambler"}
        robots = Robots(serve(looking, runs=True, **options), 1)
        assert robots.ask([0], [START], sees(4)).actions.tolist() == [4]
        robots.tell([0], [0], sees(5))
        refusal = robots.refusal()
        assert refusal.code == ErrorCode.ALGORITHM
        assert "the algorithm gambler returned the action 5, which is not from 0" in refusal.text

    def test_of_several_connections_only_those_with_the_unusable_action_are_closed(
        self, serve, looking
    ):
        served = serve(looking, config=configuration(None, discrete(5)))
        good, bad = Robots(served, 2), Robots(served, 1)
        good.tell([0, 1], [START, START], sees(1, 2))
        bad.tell([0], [START], sees(7))
        assert good.answer().actions.tolist() == [1, 2]
        assert "returned the action 7" in bad.refusal().text
        assert looking.checked == [3]

    def test_another_number_of_actions_closes_all_and_is_asked_for_once(self, serve, looking):
        served = serve(looking)
        looking.act = lambda *what: looking.states.append(what) or [1]
        both = [Robots(served, 1), Robots(served, 1)]
        for robots in both:
            robots.tell([0], [START], sees(1))
        for robots in both:
            assert "returned 1 actions for 2 environments" in robots.refusal().text
        assert len(looking.states) == 1

    def test_an_agent_of_one_environment_is_told_too(self, serve_separately, make):
        served = serve_separately(make, runs=True, config=configuration(None, discrete(5)))
        client = JsonClient(served)
        client.tell(Act({"camera": [[5]]}))
        assert client.receive() is None
