"""The training of the soak: every kind of process that there is, with links before the servers."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from haproxy import haproxy_command
from launch import REPOSITORY
from servers import COMMANDS, free_address
from soak_access import Access
from soak_client import ClientCounts
from soak_links import Link, Links
from soak_processes import Supervised
from soak_usage import Sampling

from relaax.checkpoints.aws import s3_client
from relaax.configuration import AwsAccess

BUCKET, KEY = "soak", "checkpoints"

#: How often the parameter server saves.
CHECKPOINT_INTERVAL_S = 5.0

SHARDS = REPLAYS = SERVERS = 2

CLIENTS = 4

ACTORS = 1

#: Of each client, and of each actor.
STEPS_A_SECOND = 10

WORKERS = 2

ALGORITHM: dict[str, Any] = {
    "path": str(REPOSITORY / "algorithms" / "dqn"),
    "action_size": 2,
    "state_size": [4],
    "hidden_layers": [8],
    "batch_size": 16,
    "learning_starts": 50,
    "updates_per_step": 0.1,
    "replay_size": 20_000,
    "learners": {"count": 1, "gradients": "asynchronous"},
    "seed": 1,
}


class Training:
    """All processes, by name; started, and looked after until they are stopped."""

    def __init__(self, directory: Path, links: Links, sampling: Sampling, access: Access) -> None:
        self.sampling = sampling
        self.access = access
        self._directory = directory
        self._links = links
        self._config = directory / "soak.yaml"
        self.s3_url = free_address()
        self.processes: list[Supervised] = []
        #: The links before each process, by its name.
        self.links: dict[str, list[Link]] = {}
        #: What clients count, and what the environments of actors do.
        self.counts: list[ClientCounts] = []
        self.actor_counts: list[ClientCounts] = []
        self.operators: dict[str, str] = {}
        self._wire()

    def of(self, role: str) -> list[Supervised]:
        """Return the processes of a role, in their order."""
        return [each for each in self.processes if each.role == role]

    def look_after(self) -> None:
        """Start again what has ended."""
        for each in self.processes:
            if each.runs:
                each.look_after(self.sampling.every_s)

    def in_order_of_start(self) -> Iterator[list[Supervised]]:
        """Yield what is started at once; what follows needs it."""
        yield self.of("S3 server")
        self._create_bucket()
        yield [
            each for role in ("shard", "replay", "learner", "RLX server") for each in self.of(role)
        ]
        yield self.of("HAProxy")
        yield [*self.of("client"), *self.of("actor")]

    def figure(self, name: str, figure: str) -> float | None:
        """Return a figure of a server; None if it does not answer."""
        try:
            text = self.access.answer(self.operators[name], "/metrics")
        except OSError:
            return None
        found = re.search(rf"^{figure}(?:{{.*}})? (\S+)$", text, re.MULTILINE)
        return None if found is None else float(found[1])

    def _create_bucket(self) -> None:
        client = s3_client(AwsAccess(endpoint_url=f"http://{self.s3_url}"))
        client.create_bucket(Bucket=BUCKET)

    def _wire(self) -> None:
        shards = self._linked("shard", SHARDS)
        replays = self._linked("replay", REPLAYS)
        servers = self._linked("RLX server", SERVERS)
        s3 = self._link("S3 server", self.s3_url)
        shard_urls, replay_urls = ([url for _, url in each] for each in (shards, replays))
        # What the learner and the actors reach, they reach by links of their own.
        of_learner, of_actors = (
            [[self._link(name, bind) for bind, _ in each] for each in (shards, replays)]
            for name in ("learner 1", "actor 1")
        )
        self._write(shard_urls, replay_urls, s3, of_learner, of_actors)
        self._add_s3()
        for number, (bind, _) in enumerate(shards, 1):
            flags = ["--shard", f"{number}/{SHARDS}"]
            self._add_server("shard", number, "parameter-server", bind, flags)
        for number, (bind, _) in enumerate(replays, 1):
            self._add_server("replay", number, "replay-server", bind)
        self._add_server("learner", 1, "learner", None)
        for number, (bind, _) in enumerate(servers, 1):
            self._add_server("RLX server", number, "rlx-server", bind)
        balancer = free_address()
        command = haproxy_command(
            balancer,
            [url for _, url in servers],
            self._directory,
            checks=[self.operators[each.name] for each in self.of("RLX server")],
            has_tls=self.access.is_guarded,
        )
        self.processes.append(Supervised("HAProxy", "HAProxy", command, self._directory))
        self.links["HAProxy"] = []
        for number in range(1, CLIENTS + 1):
            self._add_client(number, balancer)
        for number in range(1, ACTORS + 1):
            self._add_actor(number)

    def _write(
        self,
        shards: list[str],
        replays: list[str],
        s3: str,
        of_learner: list[list[str]],
        of_actors: list[list[str]],
    ) -> None:
        common = {"--log-level": "INFO"}
        content = {
            "relaax-parameter-server": {
                **common,
                "--shards": shards,
                "--checkpoint-aws-s3": [BUCKET, KEY],
                "--checkpoint-interval": CHECKPOINT_INTERVAL_S,
                "--aws-endpoint-url": f"http://{s3}",
            },
            "relaax-replay-server": {
                **common, "--parameter-server": shards[0], "--replay-servers": replays,
            },
            "relaax-learner": {
                **common,
                "--parameter-server": of_learner[0],
                "--replay-servers": of_learner[1],
                "--checkpoint-dir": str(self._place("learner")),
                "--checkpoint-interval": CHECKPOINT_INTERVAL_S,
            },
            "relaax-rlx-server": {
                **common,
                "--parameter-server": shards,
                "--replay-servers": replays,
                "--workers": WORKERS,
            },
            "relaax-actor": {
                **common,
                "--parameter-server": of_actors[0],
                "--replay-servers": of_actors[1],
                "--env": f"{Path(__file__).with_name('soak_environment.py')}:Counted",
            },
            "access": dict(self.access.options),
            "algorithm": ALGORITHM,
        }  # fmt: skip
        self._config.write_text(yaml.safe_dump(content))

    def _place(self, name: str, number: int | None = None) -> Path:
        return self._directory / (name if number is None else f"{name}-{number}")

    def _linked(self, role: str, count: int) -> list[tuple[str, str]]:
        """Return where each binds, and where it is reached."""
        found = []
        for number in range(1, count + 1):
            bind = free_address()
            found.append((bind, self._link(f"{role} {number}", bind)))
        return found

    def _link(self, name: str, behind: str) -> str:
        link = self._links.add(free_address(), behind)
        self.links.setdefault(name, []).append(link)
        return link.url

    def _add_s3(self) -> None:
        program = Path(__file__).with_name("soak_s3.py")
        command = [sys.executable, program, self.s3_url, self._place("s3.recording")]
        self.processes.append(
            Supervised(
                "S3 server", "S3 server", command, self._directory, is_ready=_says("serving at")
            )
        )

    def _add_server(
        self, role: str, number: int, command: str, bind: str | None, flags: list[Any] | None = None
    ) -> None:
        name = f"{role} {number}"
        self.operators[name] = free_address()
        words = [COMMANDS / f"relaax-{command}", "--config", self._config, *(flags or [])]
        words += ["--http-bind", self.operators[name]]
        if bind is not None:
            words += ["--bind", bind]
        has_counts = role in ("replay", "RLX server") or (role, number) == ("shard", 1)
        self.processes.append(
            Supervised(role, name, words, self._directory, has_counts, self._answers)
        )

    def _answers(self, process: Supervised) -> bool:
        try:
            self.access.answer(self.operators[process.name], "/readyz")
        except OSError:
            return False
        return True

    def _add_client(self, number: int, balancer: str) -> None:
        name, path = f"client {number}", self._place("steps", number)
        url = self._link(name, balancer)
        self.links["HAProxy"] += self.links[name]
        self.counts.append(ClientCounts(path))
        program = Path(__file__).with_name("soak_client.py")
        command = [sys.executable, program, url, path, number, STEPS_A_SECOND]
        self.processes.append(Supervised("client", name, command, self._directory))

    def _add_actor(self, number: int) -> None:
        name, path = f"actor {number}", self._place("actor-steps", number)
        self.actor_counts.append(ClientCounts(path))
        arguments = json.dumps({"path": str(path), "steps_a_second": STEPS_A_SECOND})
        command = [COMMANDS / "relaax-actor", "--config", self._config, "--env-kwargs", arguments]
        actor = Supervised("actor", name, command, self._directory, True, dies_whole=True)
        self.processes.append(actor)


def _says(pattern: str) -> Callable[[Supervised], bool]:
    return lambda process: re.search(pattern, process.run.text()) is not None
