"""Agents of environments, by their names, against a server that records what they report."""

import numpy as np
import pytest

from relaax.client import AgentReport, Failure, MultiAgentClient
from relaax.protocol import binary
from relaax.protocol.binary import ErrorCode, Welcome
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED


@pytest.fixture(name="racing")
def _racing(start_recording_server):
    return start_recording_server(greet=lambda number: binary.encode_welcome(Welcome(agents=True)))


def test_each_agent_is_a_number_and_those_of_an_environment_stand_together(racing):
    with MultiAgentClient(racing.url, ("left", "right"), 2) as client:
        first = client.init({(1, "left"): AgentReport([0.5], starts=True)})
        both = {(1, "right"): AgentReport([2.0], starts=True), (1, "left"): AgentReport([3.0], 0.5)}
        second = client.send(both)
    (hello,) = racing.hellos
    assert (hello.agents, hello.environments) == (("left", "right"), 4)
    assert [steps.environments.tolist() for steps in racing.steps] == [[2], [3, 2]]
    assert racing.told == [([START], [0], [0.5], []), ([START, 0], [0, 0.5], [2, 3], [])]
    assert (first, second) == ({(1, "left"): 1}, {(1, "right"): 1, (1, "left"): 1})


def test_ends_of_agents_are_told_apart_and_bring_no_action(racing):
    with MultiAgentClient(racing.url, ("a", "b", "c")) as client:
        client.init({(0, name): AgentReport([0.0], starts=True) for name in "abc"})
        actions = client.send(
            {
                (0, "a"): AgentReport(reward=1.0, is_terminated=True, is_truncated=True),
                (0, "b"): AgentReport(reward=2.0, is_truncated=True, final=[7.0]),
                (0, "c"): AgentReport([8.0], 3.0, starts=True, is_terminated=True),
            }
        )
    flags = [TERMINATED, TRUNCATED | FINAL, TERMINATED | START]
    assert racing.told[1] == (flags, [1, 2, 3], [8], [7])
    assert actions == {(0, "c"): 1}


def test_observations_by_name_are_rows_of_each_array(racing):
    seen = {"arm": {"angle": np.float32(1)}, "camera": np.zeros((2, 2), np.uint8)}
    with MultiAgentClient(racing.url, ("a", "b")) as client:
        client.init({(0, name): AgentReport(seen, starts=True) for name in "ab"})
    observations = racing.steps[0].observations
    shapes = {name: array.shape for name, array in observations.items()}
    assert shapes == {"arm/angle": (2,), "camera": (2, 2, 2)}


def test_a_server_that_does_not_know_of_agents_gets_no_step(server):
    unknown = pytest.raises(Failure, match="does not know of agents with names")
    with MultiAgentClient(server.url, ("a", "b")) as client, unknown as refused:
        client.init({(0, "a"): AgentReport([0.0], starts=True)})
    assert refused.value.code == ErrorCode.MISMATCH
    assert server.steps == []


@pytest.mark.parametrize("agents", [(), ("a", "a")])
def test_names_that_are_no_names_of_agents_are_refused(unused_url, agents):
    with pytest.raises(ValueError, match="agents are different names, one or more"):
        MultiAgentClient(unused_url, agents)


def test_an_agent_that_there_is_not_is_refused(racing):
    with MultiAgentClient(racing.url, ("a", "b")) as client, pytest.raises(KeyError, match="c"):
        client.init({(0, "c"): AgentReport([0.0], starts=True)})
