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
from processes import SMALL_PPO, Process, Training, free_port, repeated, wait_for
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


class Stored:
    """What one trainer is sent, in a replay that nothing is drawn from."""

    def __init__(self, training: Training) -> None:
        section = load_learner(["--config", str(training.yaml)]).algorithm
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
    """A parameter server, an inference server, and actors of ``ManyAgents``."""

    def __init__(self, training: Training, resources: ExitStack) -> None:
        self._training, self._resources = training, resources
        training.configure({**SMALL_PPO, "max_global_step": 10**9})
        training.start_parameter_server()
        self._servers = f"127.0.0.1:{free_port()}"
        training.start_command("relaax-inference-server", "--bind", self._servers,
            "--parameter-server", training.parameter_server_url,
        ).says("choosing at ")  # fmt: skip
        self.remote = ["--inference-servers", self._servers]

    def start(
        self,
        groups: list[dict[str, Any]],
        agents: int,
        ring_size: int = 1,
        env: str = f"{many_agents.__file__}:ManyAgents",
    ) -> tuple[Process, list[Stored]]:
        """Start an actor; return what each of its groups is sent."""
        stored = [Stored(self._training) for _ in groups]
        for each in stored:
            self._resources.enter_context(closing(each))
        config = ["--config", str(self._training.yaml), "--log-level", "INFO"]
        for group, sink in zip(groups, stored, strict=True):
            group["arguments"] = [*config, *group["arguments"], "--learner", sink.served.url]
        file = self._training.directory / f"agents-{ring_size}.yaml"
        file.write_text(yaml.safe_dump({"ring_size": ring_size, "groups": groups}))
        actor = self._training.start_command(
            "relaax-actor", "--env", env, "--seed", "1", "--agents", str(file),
            "--env-kwargs", json.dumps({"count": agents} if agents > 1 else {}),
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
    def three() -> list[dict[str, Any]]:
        ways = (EPISODE, SECOND, groups.remote)
        return [{"index_regex": str(n), "arguments": list(way)} for n, way in enumerate(ways)]

    alone = three()
    alone[0]["require_one_version"] = True
    with publishing(training.parameter_server_url):
        _, (reset, clock, remote) = groups.start(alone, agents=3)
        _, ring = groups.start(three(), agents=3, ring_size=2)
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
    groups: Groups, expressions: tuple[str, ...], expected: list[set[int]]
):
    ways = [groups.remote, EPISODE]
    described = [
        {"index_regex": expression, "arguments": list(way)}
        for expression, way in zip(expressions, ways, strict=False)
    ]
    _, stored = groups.start(described, agents=7)
    wait_for(lambda: [each.agents() for each in stored] == expected, "an episode of each", 60)


def test_an_agent_that_no_specification_matches_ends_the_actor(groups: Groups):
    actor, _ = groups.start([{"index_regex": "[0-5]", "arguments": list(EPISODE)}], agents=7)
    assert actor.wait() == 2
    assert "no index_regex matches the agent 'agent_6' with the index 6" in actor.output()


def test_an_actor_has_a_ring_of_environments_with_one_agent_each(groups: Groups):
    described = [{"index_regex": "0", "arguments": list(EPISODE), "send_after_done": True}]
    _, (stored,) = groups.start(described, agents=1, ring_size=3, env="CartPole-v1")
    wait_for(lambda: len(stored.slots()) == 3, "an episode of each environment", 60)
