"""Actor workers of several agents: which streams they have, and the versions of trajectories.

Seed 002, "Matching Agents to streams" and "Version Control". What a trainer would be sent is read.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from typing import Any

import many_agents
import numpy as np
import pytest
import yaml
from processes import COMMANDS, SMALL_PPO, Process, Training, free_port, repeated, wait_for
from replay_servers import ServedReplay

from relaax.algorithm_base import NewValues
from relaax.configuration import load_learner
from relaax.configuration.algorithm_loader import load_algorithm, make_config
from relaax.parameters import Bridge
from relaax.replay.replay import Replay
from relaax.replay.storage import ENDS, FINAL, START, Storage
from relaax.replay.writers import Writers

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

EPISODE, SECOND = (
    ["--fetch-parameter-mode", mode, "--fetch-parameter-interval", "1"]
    for mode in ("episode", "second")
)


MANY = f"{many_agents.__file__}:ManyAgents"


class Stored:
    """What one trainer is sent, in a replay that nothing is drawn from."""

    def __init__(self, configuration: str) -> None:
        section = load_learner(["--config", configuration]).algorithm
        algorithm = load_algorithm(section.directory)
        schema = algorithm.replay_spec(make_config(algorithm, section)).schema
        self._storage = Storage(schema, 100_000)
        self.served = ServedReplay(Replay(self._storage, {}, Writers(60)))

    def close(self) -> None:
        self.served.stop()

    def trajectories(self) -> list[dict[str, Any]]:
        """Return the columns of each whole episode, without its final state."""
        storage = self._storage
        rows = np.flatnonzero(storage.serials >= 0)
        rows = rows[np.lexsort((storage.serials[rows], storage.slots[rows]))]
        starts = np.flatnonzero(storage.flags[rows] & START)
        episodes = [
            part for part in np.split(rows, starts) if len(part) and storage.flags[part[-1]] & ENDS
        ]
        return [
            {name: column[part] for name, column in storage.columns.items()}
            for part in (each[storage.flags[each] & FINAL == 0] for each in episodes)
        ]

    def versions(self) -> list[set[int]]:
        return [set(each["version"].tolist()) for each in self.trajectories()]

    def slots(self) -> set[int]:
        return set(self._storage.slots[self._storage.serials >= 0].tolist())

    def agents(self) -> set[int]:
        return {int(each["observation"][0, 0]) for each in self.trajectories()}


class Groups:
    """A parameter server, an inference server where one is asked for, and actors."""

    def __init__(self, training: Training, resources: ExitStack) -> None:
        self._training, self._resources = training, resources
        training.configure({**SMALL_PPO, "max_global_step": 10**9})
        content = yaml.safe_load(training.yaml.read_text())
        del content["relaax-actor"]["--learner"]  # each group has its own
        training.yaml.write_text(yaml.safe_dump(content))

    def remote(self) -> list[str]:
        """Start an inference server; return the options of actors that ask it."""
        address = f"127.0.0.1:{free_port()}"
        self._training.start_command(
            "relaax-inference-server", "--bind", address,
            "--parameter-server", self._training.parameter_server_url,
        ).says("choosing at ")  # fmt: skip
        return ["--inference-servers", address]

    def other_policy(self, **algorithm: Any) -> str:
        """Start the parameter server of another policy; return its configuration."""
        content = yaml.safe_load(self._training.yaml.read_text())
        address, file = f"127.0.0.1:{free_port()}", self._training.directory / "other.yaml"
        content["algorithm"] |= algorithm
        content["relaax-parameter-server"] |= {
            "--bind": address, "--checkpoint-dir": str(file.with_suffix("")),
        }  # fmt: skip
        content["relaax-actor"]["--parameter-server"] = address
        file.write_text(yaml.safe_dump(content))
        words = [str(COMMANDS / "relaax-parameter-server"), "--config", str(file)]
        self._training.start("other-parameter-server", words).says("global step is ")
        return str(file)

    def start(
        self, groups: list[dict[str, Any]], ring_size: int = 1, env: str = MANY, **env_kwargs: Any
    ) -> tuple[Process, list[Stored]]:
        """Start an actor; return what each of its groups is sent."""
        stored = []
        for group in groups:
            configuration = group.pop("configuration", str(self._training.yaml))
            sink = self._resources.enter_context(closing(Stored(configuration)))
            group["arguments"] = ["--config", configuration, *group["arguments"]]
            group["arguments"] += ["--learner", sink.served.url]
            stored.append(sink)
        file = self._training.directory / f"agents-{ring_size}.yaml"
        file.write_text(yaml.safe_dump({"ring_size": ring_size, "groups": groups}))
        actor = self._training.start_command(
            "relaax-actor", "--env", env, "--seed", "1", "--agents", str(file),
            "--env-kwargs", json.dumps(env_kwargs),
        )  # fmt: skip
        return actor, stored


@pytest.fixture(name="groups")
def _groups(training: Training) -> Iterator[Groups]:
    with ExitStack() as resources:
        yield Groups(training, resources)


@contextmanager
def publishing(url: str) -> Iterator[None]:
    """Publish another version of the policy every 20 ms."""
    with closing(Bridge(url)) as bridge:
        first, numbers = bridge.pull().vector, count(1)
        assert first is not None

        def publish() -> None:
            number = next(numbers)
            another = first.copy()
            another[0] += number * 1e-4
            bridge.push(NewValues(another, number))

        with repeated(publish):
            yield


def test_a_trajectory_has_one_version_where_the_policy_is_pulled_at_the_reset_of_one_environment(
    training: Training, groups: Groups
):
    training.start_parameter_server()
    remote_way = groups.remote()

    def three() -> list[dict[str, Any]]:
        ways = (EPISODE, SECOND, remote_way)
        return [{"index_regex": str(n), "arguments": list(way)} for n, way in enumerate(ways)]

    alone = three()
    alone[0]["require_one_version"] = True
    with publishing(training.parameter_server_url):
        _, (reset, clock, remote) = groups.start(alone, count=3)
        _, ring = groups.start(three(), ring_size=2, count=3)
        everything = [reset, clock, remote, *ring]
        wait_for(lambda: min(len(each.versions()) for each in everything) >= 12, "episodes", 60)
    assert {len(versions) for versions in reset.versions()} == {1}
    assert len(set.union(*reset.versions())) > 5
    for each in (clock, remote, *ring):
        assert max(len(versions) for versions in each.versions()) > 1


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [((".*",), [set(range(7))]), (("[0-3]", "[3-6]"), [{0, 1, 2, 3}, {4, 5, 6}])],
)
def test_agents_choose_and_deliver_where_the_first_specification_says(
    training: Training, groups: Groups, expressions: tuple[str, ...], expected: list[set[int]]
):
    training.start_parameter_server()
    ways = [EPISODE] if len(expressions) == 1 else [groups.remote(), EPISODE]
    described = [
        {"index_regex": expression, "arguments": list(way)}
        for expression, way in zip(expressions, ways, strict=True)
    ]
    _, stored = groups.start(described, count=7)
    wait_for(lambda: [each.agents() for each in stored] == expected, "an episode of each", 60)


def test_an_agent_that_no_specification_matches_ends_the_actor(groups: Groups):
    actor, _ = groups.start([{"index_regex": "[0-5]", "arguments": list(EPISODE)}], count=7)
    assert actor.wait() == 2
    assert "no index_regex matches the agent 'agent_6' with the index 6" in actor.output()


def test_an_actor_has_a_ring_of_environments_with_one_agent_each(
    training: Training, groups: Groups
):
    training.start_parameter_server()
    described = [{"index_regex": "0", "arguments": list(EPISODE), "send_after_done": True}]
    _, (stored,) = groups.start(described, ring_size=3, env="CartPole-v1")
    wait_for(lambda: len(stored.slots()) == 3, "an episode of each environment", 60)


def test_agents_with_policies_of_their_own_may_have_other_spaces(
    training: Training, groups: Groups
):
    training.start_parameter_server()
    other = groups.other_policy(state_size=[2], action_size=3)
    described = [
        {"index_regex": "[01]", "arguments": list(EPISODE)},
        {"index_regex": "agent_2", "arguments": list(EPISODE), "configuration": other},
    ]
    _, (two, one) = groups.start(described, count=3, has_roles=True)
    wait_for(lambda: (two.agents(), one.agents()) == ({0, 1}, {2}), "an episode of each", 60)


def test_agents_of_one_policy_with_different_spaces_end_the_actor(groups: Groups):
    described = [{"index_regex": ".*", "arguments": list(EPISODE)}]
    actor, _ = groups.start(described, count=2, has_roles=True)
    assert actor.wait() == 2
    said = "agents of one policy must have the same spaces: agent_0 and agent_1 observe in"
    assert said in actor.output()
