"""A trial of an experiment on this machine: the files that its processes are started from."""

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from relaax.errors import ConfigurationError
from relaax.experiments.policies import section_of
from relaax.experiments.workers import ActorWorker, InferenceStream, SampleStream, TrainerWorker
from relaax.experiments.written import NamedExperiment, to_yaml

HOST = "localhost"


@dataclass(frozen=True)
class TrainedPolicy:
    """A policy, its trainers, and where their processes listen."""

    name: str
    trainers: Sequence[TrainerWorker]
    #: The parameter server's, and one of each learner.
    ports: Sequence[int]

    @property
    def parameter_server(self) -> str:
        """The address of its parameter server."""
        return f"{HOST}:{self.ports[0]}"

    @property
    def learners(self) -> list[str]:
        """The addresses of its learners."""
        return [f"{HOST}:{port}" for port in self.ports[1:]]


class Trial:
    """The folder of a trial, and the processes in it.

    ``free_port`` returns a port that nothing listens at, another one with each call.
    """

    def __init__(
        self, experiment: NamedExperiment, directory: Path, free_port: Callable[[], int]
    ) -> None:
        self.experiment = experiment
        self.directory = directory
        trainers = experiment.config.trainers
        names = list(dict.fromkeys(trainer.policy_name for trainer in trainers))
        self.policies = {}
        for name in names:
            own = [trainer for trainer in trainers if trainer.policy_name == name]
            ports = [free_port() for _ in range(1 + len(own))]
            self.policies[name] = TrainedPolicy(name, own, ports)
        #: Policy workers and their addresses.
        self.inference_servers = [
            (worker, f"{HOST}:{free_port()}") for worker in experiment.config.policies
        ]

    def write(self) -> Path:
        """Write the files, and return the Procfile.

        ConfigurationError where the folder has another experiment.
        """
        twin, text = self.directory / "experiment.yaml", to_yaml(self.experiment)
        if twin.exists() and twin.read_text(encoding="utf-8") != text:
            raise ConfigurationError(
                f"{self.directory} has a trial of another form of this experiment: give this one "
                "another name with -f, or remove that folder"
            )
        self.directory.mkdir(parents=True, exist_ok=True)
        twin.write_text(text, encoding="utf-8")
        for policy in self.policies.values():
            content = yaml.safe_dump(self._configuration(policy), sort_keys=False)
            self._file_of(policy.name).write_text(content, encoding="utf-8")
        procfile = self.directory / "Procfile"
        lines = (f"{name}: exec {shlex.join(words)}\n" for name, words in self.lines())
        procfile.write_text("".join(lines), encoding="utf-8")
        return procfile

    def lines(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the name and the command of each line of the Procfile."""
        for policy in self.policies.values():
            file = str(self._file_of(policy.name))
            yield f"{policy.name}-ps", ["relaax-parameter-server", "--config", file]
            for number, address in enumerate(policy.learners):
                place = str(self.directory / policy.name / f"learner{number}")
                yield (
                    f"{policy.name}-trainer{number}",
                    [
                        "relaax-learner", "--config", file, "--bind", address,
                        "--checkpoint-dir", place,
                    ],
                )  # fmt: skip
        for number, (worker, address) in enumerate(self.inference_servers):
            file = str(self._file_of(worker.policy_name))
            words = ["relaax-inference-server", "--config", file, "--bind", address]
            yield f"policy{number}", words
        yield from self._actor_lines()

    def _actor_lines(self) -> Iterator[tuple[str, list[str]]]:
        """Yield a line for the actors of each learner that are alike."""
        first = 0
        for number, (actor, same) in enumerate(groupby(self.experiment.config.actors)):
            count = len(list(same))
            spec = actor.spec_of(0)
            if spec is None:
                raise ConfigurationError("agent 0 has no specification")
            stream = actor.inference_streams[spec.inference_stream_idx]
            learners = self._learners_of(actor.sample_streams[spec.sample_stream_idx])
            for place, learner in enumerate(learners or [""]):
                share = len(range(place, count, max(len(learners), 1)))
                if share:
                    name = f"actors{number}" + (f"-{place}" if len(learners) > 1 else "")
                    words = self._actor(actor, stream, learner)
                    yield name, [*words, "--actors", str(share), "--seed", str(1 + first)]
                first += share

    def _learners_of(self, stream: SampleStream) -> list[str]:
        """Return the addresses of the trainers of a sample stream."""
        return [
            address
            for policy in self.policies.values()
            if policy.trainers[0].sample_stream == stream
            for address in policy.learners
        ]

    def _actor(self, actor: ActorWorker, stream: InferenceStream, learner: str) -> list[str]:
        """Return the command of actors that choose by a stream, but for their number and seed."""
        policy, way = self._way(stream)
        made_by = self.experiment.environments.get(actor.env.type_, actor.env.type_)
        words = ["relaax-actor", "--config", str(self._file_of(policy)), "--env", made_by]
        if actor.env.args:
            words += ["--env-kwargs", json.dumps(actor.env.args)]
        # Without a trainer nothing is learnt from the steps: actions are samples of the policy.
        words += ["--learner", learner] if learner else ["--mode", "eval_stochastic"]
        return [*words, *way]

    def _way(self, stream: InferenceStream) -> tuple[str, list[str]]:
        """Return the policy of a stream, and the options by which actors choose with it."""
        if stream.type_ is InferenceStream.Type.INLINE:
            seconds = stream.pull_interval_seconds
            mode, interval = ("episode", 1) if seconds is None else ("second", seconds)
            fetches = ["--fetch-parameter-mode", mode, "--fetch-parameter-interval", str(interval)]
            return str(stream.policy_name), fetches
        served = [each for each in self.inference_servers if each[0].inference_stream == stream]
        return served[0][0].policy_name, ["--inference-servers", *(place for _, place in served)]

    def _file_of(self, policy: str) -> Path:
        return self.directory / f"{policy}.yaml"

    def _configuration(self, policy: TrainedPolicy) -> dict[str, Any]:
        place = self.directory / policy.name
        section = section_of(self.experiment, policy.trainers[0])
        if len(policy.learners) > 1:
            section["learners"] = {"count": len(policy.learners)}
        to_server = {"--parameter-server": policy.parameter_server}
        return {
            "relaax-parameter-server": {
                "--bind": policy.parameter_server,
                "--checkpoint-dir": str(place / "checkpoints"),
                "--metrics-dir": str(place / "metrics"),
            },
            "relaax-learner": to_server,
            "relaax-inference-server": to_server,
            "relaax-actor": to_server,
            "algorithm": section,
        }
