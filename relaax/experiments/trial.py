"""A trial of an experiment on this machine: the files that its processes are started from."""

import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby, starmap
from pathlib import Path
from typing import Any

import yaml

from relaax.configuration.eval_rules import EvalRule
from relaax.configuration.wandb_runs import WandbRun
from relaax.errors import ConfigurationError
from relaax.experiments.curriculum_checks import curriculum_of
from relaax.experiments.gpus import placed
from relaax.experiments.policies import section_of
from relaax.experiments.population import learner_options, population_file, server_options
from relaax.experiments.routes import HOST, Routes, TrainedPolicy, identifier_words
from relaax.experiments.scheduling import Scheduling
from relaax.experiments.stream_checks import buffers_of
from relaax.experiments.wandb_files import file_of_runs, run_of
from relaax.experiments.workers import ActorWorker, ExperimentConfig, Worker, WorkerInformation
from relaax.experiments.written import NamedExperiment, from_yaml, to_yaml

#: Folders of a trial: a file for each policy and a folder for what is learnt; a file for each group
#: of actors.
_POLICIES, _ACTORS, _RUNS = "policies", "actors", "runs"

#: The kind of a process that is no worker of its own.
_PARAMETER_SERVER = "parameter_server"

#: The experiment as YAML.
_TWIN = "experiment.yaml"

#: Keys of a trainer that may change in a trial that goes on.
_ENDS = ("max_global_step", "anneal_from")

#: Types of environments that are there without being registered.
ENVIRONMENT_TYPES: Mapping[str, str] = {"atari": "relaax.client.gymnasium_atari:relaax/Atari-v0"}


@dataclass(frozen=True)
class ActorGroup:
    """Actor workers that are alike, and deliver to the same learners."""

    name: str
    worker: ActorWorker
    count: int
    #: Of the first one.
    seed: int
    #: The place of their trainer among those of each sample stream.
    places: Sequence[int]
    #: The resources of each.
    scheduling: Scheduling


@dataclass(frozen=True)
class Line:
    """A line of the Procfile: the process of a worker, or one for actor workers that are alike."""

    name: str
    #: As Weights & Biases and Prometheus have it: ``trainer`` for instance.
    kind: str
    words: list[str]
    #: Of a parameter server the policy's first trainer.
    worker: Worker
    #: None for workers of several policies.
    policy: str | None
    scheduling: Scheduling = field(default_factory=Scheduling)


class Trial:
    """The folder of a trial, and the processes in it.

    ``free_port`` returns a port that nothing listens at, another one with each call. ``gpus`` are
    those of this machine, as CUDA names them; None where all workers are to run without.
    ``registry`` is ``etcd://HOST:PORT``, for names of streams; None for the parameter servers.
    ``access`` is the section ``access`` of all processes, or its file. On a cluster
    (``is_on_cluster``) each actor worker is a process, and the cluster gives GPUs to processes:
    ``gpus`` is None, or empty. Processes find the files in the folder ``files``, by default in
    ``directory``, where they keep what they learn. ``has_wandb``: each worker has a run at Weights
    & Biases. ``http_ports`` returns so many ports in a row, like ``free_port``: with it each
    process answers operators at one of them.
    """

    def __init__(
        self,
        experiment: NamedExperiment,
        directory: Path,
        free_port: Callable[[], int],
        gpus: Sequence[str] | None = None,
        registry: str | None = None,
        access: Mapping[str, Any] | str | None = None,
        *,
        is_on_cluster: bool = False,
        has_wandb: bool = False,
        http_ports: Callable[[int], Sequence[int]] | None = None,
        files: Path | None = None,
    ) -> None:
        self.experiment = experiment
        self.directory = directory
        self._files = files or directory
        self._access = access
        self._is_on_cluster = is_on_cluster
        self._has_wandb = has_wandb
        trainers = experiment.config.trainers
        self.policies: dict[str, TrainedPolicy] = {}
        for name in dict.fromkeys(trainer.policy_name for trainer in trainers):
            own = [trainer for trainer in trainers if trainer.policy_name == name]
            buffers = buffers_of(experiment, own[0].sample_stream.stream_name)
            ports = [free_port() for _ in range(1 + len(own) + len(buffers))]
            self.policies[name] = TrainedPolicy(name, own, buffers, ports)
        self._routes = Routes(experiment, directory.name, self.policies, registry)
        self.actor_groups = list(self._grouped_actors())
        self._lines = [
            *chain.from_iterable(map(self._lines_of_policy, self.policies.values())),
            *starmap(self._inference_line, enumerate(self._scheduled("policies"))),
            *map(self._actor_line, self.actor_groups),
            *starmap(self._population_line, enumerate(self._scheduled("population_manager"))),
        ]
        #: By line, where operators are answered: by actor workers each at an address of its own.
        self.for_operators: dict[str, list[str]] = {}
        if http_ports is not None:
            workers = {group.name: group.count for group in self.actor_groups}
            for line in self._lines:
                http = http_ports(workers.get(line.name, 1))
                self.for_operators[line.name] = [f"{HOST}:{port}" for port in http]
        #: The GPU of each process that wants one, by its name; "" where a cluster chooses it.
        self.gpus: dict[str, str] = {}
        if gpus is not None and is_on_cluster:
            self.gpus = {name: "" for name, each in self.resources().items() if each.gpu}
        elif gpus is not None:
            self.gpus = placed(self._wanted_gpus(), gpus)

    def write(self) -> Path:
        """Write the files, and return the Procfile.

        ConfigurationError where the folder has checkpoints of another experiment.
        """
        twin = self.directory / _TWIN
        has_begun = any((self.directory / _POLICIES).glob("*/*/cp-*"))
        before = from_yaml(twin) if has_begun and twin.exists() else self.experiment
        if _without_ends(before) != _without_ends(self.experiment):
            raise ConfigurationError(
                f"{self.directory} has a trial of another form of this experiment: more than "
                f"{', '.join(_ENDS)} and timeout_seconds has changed. Give this one another name "
                "with -f, or remove that folder"
            )
        for path, text in self.files().items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        procfile = self.directory / "Procfile"
        lines = (f"{name}: {command}\n" for name, command in self.commands().items())
        procfile.write_text("".join(lines), encoding="utf-8")
        return procfile

    def files(self) -> dict[Path, str]:
        """Return the files that processes read, and the experiment."""
        contents = {
            **{
                self._file_of(_POLICIES, policy.name): self._configuration(policy)
                for policy in self.policies.values()
            },
            **{
                self._file_of(_ACTORS, each.name): self.agents_of(each)
                for each in self.actor_groups
            },
            **{
                self._files / f"population{number}.yaml": population_file(self.experiment, manager)
                for number, manager in enumerate(self.experiment.config.population_manager)
            },
        }
        contents |= {
            self._file_of(_RUNS, name): file_of_runs(*runs) for name, runs in self._runs().items()
        }
        texts = {path: yaml.safe_dump(each, sort_keys=False) for path, each in contents.items()}
        return {self._files / _TWIN: to_yaml(self.experiment), **texts}

    def commands(self) -> dict[str, str]:
        """Return the lines of the Procfile by their names."""
        return {name: f"{self._start(name)} {shlex.join(words)}" for name, words in self.lines()}

    def lines(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the name and the command of each line of the Procfile."""
        runs = self._runs()
        for line in self._lines:
            name, words = line.name, list(line.words)
            if name in runs:
                words += ["--wandb-runs", str(self._file_of(_RUNS, name))]
            if name in self.for_operators:
                words += ["--http-bind", self.for_operators[name][0]]
            yield name, words

    def _runs(self) -> dict[str, list[WandbRun]]:
        """Return the runs at Weights & Biases of the workers of each line, by the line's name."""
        if not self._has_wandb:
            return {}
        found = defaultdict[str, list[WandbRun]](list)
        run = partial(run_of, experiment=self.experiment, trial=self.directory.name)
        for line in self._lines:
            if line.kind != _PARAMETER_SERVER:
                found[line.name].append(run(line.worker, line.kind, line.policy))
        for manager in self.experiment.config.eval_managers:
            name = manager.policy_name
            found[f"{name}-ps"].append(run(manager, "eval_manager", name))
        return found

    def _lines_of_policy(self, policy: TrainedPolicy) -> Iterator[Line]:
        """Yield the lines of a policy's parameter server, replay servers and learners."""
        name, file = policy.name, str(self._file_of(_POLICIES, policy.name))
        words = ["relaax-parameter-server", "--config", file]
        yield Line(f"{name}-ps", _PARAMETER_SERVER, words, policy.trainers[0], name)
        servers = policy.replay_servers
        drawn = ["--replay-servers", *servers] if servers else []
        needs = [each for buffer, each in self._scheduled("buffers") if buffer in policy.buffers]
        for number, (buffer, address, scheduling) in enumerate(
            zip(policy.buffers, servers, needs, strict=True)
        ):
            own = f"buffer{number}"
            words = ["relaax-replay-server", "--config", file, "--bind", address, "--name", own]
            words += ["--checkpoint-dir", str(self._place_of(policy) / "buffers"), *drawn]
            yield Line(f"{name}-{own}", "buffer", words, buffer, name, scheduling)
        needs = [each for own, each in self._scheduled("trainers") if own in policy.trainers]
        for number, (trainer, address, scheduling) in enumerate(
            zip(policy.trainers, policy.learners, needs, strict=True)
        ):
            words = ["relaax-learner", "--config", file, "--bind", address]
            if len(policy.learners) > 1:
                words += ["--checkpoint-dir", str(self._place_of(policy) / f"learner{number}")]
            words += drawn
            yield Line(f"{name}-trainer{number}", "trainer", words, trainer, name, scheduling)

    def _inference_line(self, number: int, scheduled: tuple[Any, Scheduling]) -> Line:
        worker, scheduling = scheduled
        name = worker.policy_name
        # Actors find it by its name: the system chooses its port.
        words = ["relaax-inference-server", "--config", str(self._file_of(_POLICIES, name))]
        words += ["--bind", f"{HOST}:0", "--name", self._routes.name_of(worker)]
        words += identifier_words(worker)
        return Line(f"policy{number}", "policy", words, worker, name, scheduling)

    def _population_line(self, number: int, scheduled: tuple[Any, Scheduling]) -> Line:
        name = f"population{number}"
        manager, scheduling = scheduled
        words = ["relaax-population-manager", "--members"]
        words += [str(self._file_of(_POLICIES, member)) for member in manager.population]
        words += ["--parameter-servers"]
        words += [self.policies[member].parameter_server for member in manager.population]
        words += ["--rules", str(self._files / f"{name}.yaml")]
        words += ["--directory", str(self.directory / name)]
        return Line(name, "population_manager", words, manager, None, scheduling)

    def targets(self) -> list[dict[str, Any]]:
        """Return the addresses for operators, with labels, as Prometheus' file_sd_configs has them.

        An actor worker's figures have a policy of their own.
        """
        seen: Counter[str] = Counter()
        found = []
        for line in self._lines:
            for address in self.for_operators.get(line.name, ()):
                labels = {
                    "job": line.words[0],
                    "experiment": self.experiment.name,
                    "trial": self.directory.name,
                    "worker": line.kind,
                    "worker_id": str(seen[line.kind]),
                    "process": line.name,
                    **({} if line.policy is None else {"policy": line.policy}),
                }
                found.append({"targets": [address], "labels": labels})
                seen[line.kind] += 1
        return found

    def information(self) -> dict[str, WorkerInformation]:
        """Return what is said about the worker of each line.

        A policy's parameter server lives and ends with its trainers.
        """
        return {line.name: line.worker.worker_info for line in self._lines}

    def resources(self) -> dict[str, Scheduling]:
        """Return by line what a process of it needs; of actor workers each one.

        A line that is no worker's, such as that of a parameter server, has the default.
        """
        return {line.name: line.scheduling for line in self._lines}

    def counts(self) -> dict[str, int]:
        """Return how many processes each group of actors is, by its line; 1 on this machine."""
        return {
            group.name: group.count if self._is_on_cluster else 1 for group in self.actor_groups
        }

    def _start(self, name: str) -> str:
        """Return the beginning of a line: its process sees its own GPU, or none."""
        if self._is_on_cluster and name in self.gpus:
            return "exec"
        return f"exec env CUDA_VISIBLE_DEVICES={self.gpus.get(name, '')}"

    def _wanted_gpus(self) -> dict[str, float]:
        """Return the GPU, or the part of one, that each line wants on this machine."""
        wanted = {name: each.gpu for name, each in self.resources().items()}
        for group in self.actor_groups:
            wanted[group.name] = gpu = group.count * group.scheduling.gpu
            if gpu > 1:
                raise ConfigurationError(
                    f"gpu: the {group.count} actors of {group.name} want {gpu:g} GPUs, and "
                    "actors that are alike share one: give each a smaller part"
                )
        return wanted

    def _scheduled(self, kind: str) -> list[tuple[Any, Scheduling]]:
        """Return the workers of a kind with their resources."""
        workers, scheduling = getattr(self.experiment.config, kind), self.experiment.scheduling
        return list(zip(workers, scheduling.of_each(kind), strict=True))

    def _grouped_actors(self) -> Iterator[ActorGroup]:
        """Yield the actors that are alike, and deliver to the same learners."""
        first = 0
        for number, ((actor, scheduling), same) in enumerate(groupby(self._scheduled("actors"))):
            count = len(list(same))
            shares: dict[tuple[int, ...], list[int]] = {}
            for index in range(first, first + count):
                shares.setdefault(self._routes.places(actor, index), []).append(index)
            for place, (places, share) in enumerate(shares.items()):
                name = f"actors{number}" + (f"-{place}" if len(shares) > 1 else "")
                yield ActorGroup(name, actor, len(share), 1 + first, places, scheduling)
                first += len(share)

    def _actor_line(self, group: ActorGroup) -> Line:
        actor = group.worker
        policy = self._routes.policy_of(actor, actor.agent_specs[0])
        types = {**ENVIRONMENT_TYPES, **self.experiment.environments}
        made_by = types.get(actor.env.type_, actor.env.type_)
        file = str(self._file_of(_POLICIES, policy))
        words = ["relaax-actor", "--config", file, "--env", made_by]
        if actor.env.args:
            words += ["--env-kwargs", json.dumps(actor.env.args)]
        words += ["--agents", str(self._file_of(_ACTORS, group.name))]
        staging = curriculum_of(actor, self.experiment)
        if staging is not None:
            words += ["--curriculum-server", self.policies[staging].parameter_server]
        actors = 1 if self._is_on_cluster else group.count
        words += ["--actors", str(actors), "--seed", str(group.seed)]
        return Line(group.name, "actor", words, actor, None, group.scheduling)

    def agents_of(self, group: ActorGroup) -> dict[str, Any]:
        """Return the file of a group of actors: each specification's policy and sink."""
        return {
            "ring_size": group.worker.ring_size,
            "max_num_steps": group.worker.max_num_steps,
            "groups": [
                {
                    "index_regex": spec.index_regex,
                    "arguments": [
                        "--config",
                        str(self._file_of(_POLICIES, self._routes.policy_of(group.worker, spec))),
                        *self._routes.inference_words(group.worker, spec),
                        *self._routes.sample_words(group.worker, spec, group.places),
                    ],
                    # Whole episodes of an evaluation are reported: no step is sent.
                    **({} if group.worker.is_evaluation else spec.written()),
                    **({"is_team": True} if self._routes.is_team(group.worker, spec) else {}),
                }
                for spec in group.worker.agent_specs
            ],
        }

    def _file_of(self, folder: str, name: str) -> Path:
        """Return the file of a policy, or of a group of actors."""
        return self._files / folder / f"{name}.yaml"

    def _place_of(self, policy: TrainedPolicy) -> Path:
        """Return the folder of what is learnt of a policy."""
        return self.directory / _POLICIES / policy.name

    def _lines_of(self, policy: TrainedPolicy) -> Iterator[str]:
        """Yield the names of the lines that evaluate a policy."""
        for number in range(len(policy.learners)):
            yield f"{policy.name}-trainer{number}"
        for number, worker in enumerate(self.experiment.config.policies):
            if worker.policy_name == policy.name:
                yield f"policy{number}"
        for group in self.actor_groups:
            if any(s.policy_name == policy.name for s in group.worker.inference_streams):
                yield group.name

    def _configuration(self, policy: TrainedPolicy) -> dict[str, Any]:
        place = self._place_of(policy)
        section = section_of(self.experiment, policy.trainers[0])
        if any(name in self.gpus for name in self._lines_of(policy)):
            section["gpu"] = True
        if len(policy.learners) > 1:
            section["learners"] = {"count": len(policy.learners)}
        to_server = {"--parameter-server": policy.parameter_server}
        return {
            "relaax-parameter-server": {
                "--bind": policy.parameter_server,
                "--checkpoint-dir": str(place / "checkpoints"),
                "--metrics-dir": str(place / "metrics"),
                **self._database(policy),
            },
            "relaax-learner": {
                **to_server,
                "--checkpoint-dir": str(place / "learner0"),
                **learner_options(self.experiment, policy.name),
            },
            "relaax-replay-server": to_server,
            "relaax-inference-server": to_server,
            "relaax-actor": to_server,
            **({} if self._access is None else {"access": self._access}),
            "algorithm": section,
        }

    def _database(self, policy: TrainedPolicy) -> dict[str, Any]:
        """Return options of the parameter server: the policy's database, and its tags."""
        trainer = policy.trainers[0]
        database = trainer.parameter_db
        rules = {
            "--database-mongodb": database.database_mongodb,
            "--database-expire-days": database.database_expire_days,
            "--push-frequency-seconds": trainer.push_frequency_seconds,
            "--push-frequency-steps": trainer.push_frequency_steps,
        }
        return {
            "--database-dir": str(self._place_of(policy) / "database"),
            "--database-name": f"{self.experiment.name}/{self.directory.name}/{policy.name}",
            "--database-type": database.type_.name.lower(),
            **{key: value for key, value in rules.items() if value is not None},
            **self._eval_managers(policy),
            **server_options(self.experiment, policy.name),
        }

    def _eval_managers(self, policy: TrainedPolicy) -> dict[str, Any]:
        """Return the option of the parameter server with the rules of its evaluations."""
        rules = {
            manager.tag: {
                **manager.model_dump(mode="json", include=set(EvalRule.model_fields)),
                "eval_sample_stream": manager.eval_sample_stream.stream_name,
            }
            for manager in self.experiment.config.eval_managers
            if manager.policy_name == policy.name
        }
        return {"--eval-managers": rules} if rules else {}


def _without_ends(experiment: NamedExperiment) -> str:
    """Return what stays the same of an experiment as long as a trial of it goes on."""
    trainers = []
    for each in experiment.config.trainers:
        args = {key: value for key, value in each.trainer.args.items() if key not in _ENDS}
        trainer = each.trainer.model_copy(update={"args": args})
        trainers.append(each.model_copy(update={"trainer": trainer}))
    defaults = ExperimentConfig.model_fields["timeout_seconds"].get_default()
    config = experiment.config.model_copy(
        update={"trainers": trainers, "timeout_seconds": defaults}
    )
    return to_yaml(replace(experiment, config=config))
