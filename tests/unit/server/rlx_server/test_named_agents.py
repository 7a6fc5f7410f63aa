"""A client whose environments have agents with names, which take turns, join and leave."""

import numpy as np
import pytest
from json_requests import Act
from processes import REPOSITORY
from served_worker import BinaryClient, JsonClient, send

from relaax.configuration.algorithm_loader import load_algorithm
from relaax.errors import InvalidState
from relaax.protocol import binary
from relaax.protocol.binary import Hello
from relaax.server.rlx_server.worker.session import begin
from relaax.server.rlx_server.worker.settings import WorkerSettings
from relaax.steps import START, TERMINATED, AgentName


def names_of(transitions):
    return [agent.name for agent in transitions.agents]


def test_agents_take_turns_and_one_leaves_while_the_other_goes_on(serve, oracle, monkeypatch):
    acts, act = [], oracle.act
    monkeypatch.setattr(
        oracle,
        "act",
        lambda transitions, *states: (
            acts.append(names_of(transitions)) or act(transitions, *states)
        ),
    )
    client = BinaryClient(serve(), environments=4, agents=("left", "right"))
    client.ask([0, 2], [START, START], [0, 0], [1, 2])
    client.ask([1, 3], [START, START], [0, 0], [3, 4])
    client.ask([0], [0], [0.5], [5])
    left = client.ask([1, 0], [TERMINATED, 0], [1, -1], [6])
    client.ask([1], [START], [0], [7])
    assert acts == [["left", "left"], ["right", "right"], ["left"], ["left"], ["right"]]
    assert left.scores.tolist() == [1.0]
    assert oracle.reported[0] == [
        ("start", 1.0), ("reward", 0.5), ("state", 5.0), ("reward", -1.0), ("state", 6.0),
    ]  # fmt: skip
    assert oracle.reported[1] == [
        ("start", 3.0), ("reward", 1.0), ("terminated",), ("start", 7.0),
    ]  # fmt: skip


def test_the_agents_of_an_environment_are_one_group(serve, oracle, monkeypatch):
    seen = []
    monkeypatch.setattr(
        oracle, "act", lambda transitions, states, _: seen.extend(transitions.agents) or states
    )
    client = BinaryClient(serve(), environments=4, agents=("left", "right"))
    client.ask(range(4), [START] * 4, np.zeros(4), range(4))
    groups = [agent.group for agent in seen]
    assert groups[0] == groups[1] != groups[2] == groups[3]


def settings_of(**keys):
    algorithm = load_algorithm(REPOSITORY / "algorithms" / "ppo")
    config = algorithm.Config({"action_size": 2, "state_size": [4], **keys})
    return WorkerSettings(
        algorithm, config, "localhost:1", timeout_s=None,
        open_connection=None, max_frame_bytes=None, max_environments=9,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("agents", "named"), [(("left", "right"), "'right' with the index 1"), (None, "'' with the")]
)
def test_an_agent_that_no_policy_is_for_is_refused_by_name(agents, named):
    settings = settings_of(agents=[{"index_regex": "left"}])
    hello = Hello("", "", 2, agents=agents)
    with pytest.raises(InvalidState, match=f"no entry of agents matches the agent {named}"):
        begin(settings, binary.encode_hello(hello))


def test_a_client_of_version_1_names_its_agent_in_a_message_without_an_answer(
    serve, oracle, monkeypatch
):
    seen, act = [], oracle.act
    monkeypatch.setattr(
        oracle,
        "act",
        lambda transitions, *states: seen.extend(transitions.agents) or act(transitions, *states),
    )
    served = serve()
    client = JsonClient(served)
    send(served, client.connection, b'["agent", "right", 1, "duel 7"]')
    client.tell(Act([5]))
    client.action()
    assert seen == [AgentName("right", "duel 7", 1)]
    send(served, client.connection, b'["agent", "left"]')
    assert client.receive() is None


@pytest.mark.parametrize("first", [b'["agent", "right"]', b'["act", "[0, 0, 0, 0]"]'])
def test_an_agent_of_version_1_that_no_policy_is_for_is_refused(first):
    settings = settings_of(agents=[{"index_regex": "left"}])
    with pytest.raises(InvalidState, match="no entry of agents matches the agent"):
        begin(settings, first)
    settings = settings_of(agents=[{"index_regex": "left|right|"}])
    assert begin(settings, first).welcome is None


def test_agents_are_promised_to_a_client_that_names_them():
    for agents in (("left", "right"), None):
        welcome = begin(settings_of(), binary.encode_hello(Hello("", "", 2, agents=agents))).welcome
        assert binary.decode_welcome(welcome).agents is bool(agents)
