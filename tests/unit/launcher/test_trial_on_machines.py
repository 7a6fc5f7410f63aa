"""The processes of a trial on the machines of a cluster."""

from dataclasses import replace
from itertools import count

import pytest
from experiment_parts import INLINE, actor, buffer, experiment, policy_worker, spec, trainer

from relaax.address import Address
from relaax.configuration import (
    load_actor,
    load_inference_server,
    load_learner,
    load_parameter_server,
    load_replay_server,
)
from relaax.configuration.actor_agents import read_agents
from relaax.configuration.addresses import known_addresses
from relaax.errors import ConfigurationError
from relaax.experiments import ExperimentScheduling, PopulationManager, Scheduling, TasksGroup
from relaax.experiments.trial import Trial
from relaax.launcher.described import copied, described, read_procfile, told
from relaax.server.actor.groups import load_group

LOADERS = {
    "relaax-parameter-server": load_parameter_server,
    "relaax-learner": load_learner,
    "relaax-replay-server": load_replay_server,
    "relaax-inference-server": load_inference_server,
    "relaax-actor": load_actor,
}

#: Two actors that ask policy workers, and one with two policies; steps go to buffers.
MIXED = experiment(
    [
        *[actor(samples=["steps"])] * 2,
        actor(
            [INLINE, "default"], ["steps"], [spec(index_regex="0"), spec(inference_stream_idx=1)]
        ),
    ],
    [policy_worker()] * 2,
    [trainer()],
    buffers=[buffer()] * 2,
)


def on_cluster(found, folder, **fields):
    ports = count(7100)
    return Trial(found, folder / "one", lambda: next(ports), is_on_cluster=True, **fields)


def options_of(process):
    arguments = [word.value for word in process.command.arguments(process.word)]
    return LOADERS[process.program](arguments).options


def groups_of(options):
    """The options of an actor's groups."""
    agents = read_agents(options.agents)
    return [load_group(agents, n, options).options for n in range(len(agents.groups))]


def test_all_processes_of_a_trial_find_each_other_on_other_machines(tmp_path):
    trial = on_cluster(MIXED, tmp_path)
    processes = copied(described(read_procfile(trial.write())), trial.counts(), {})
    servers = [each for each in processes if each.listens is not None]
    places = {
        each.name: Address(f"10.0.0.{number}", each.listens.port)
        for number, each in enumerate(servers, 1)
    }
    now = told(processes, places)
    hosts = {}
    for name, process in now.items():
        options = options_of(process)
        of_groups = groups_of(options) if process.program == "relaax-actor" else [options]
        hosts[name] = {each.host for group in of_groups for each in known_addresses(group)}
        if name in places:
            assert options.bind == places[name]
    server, *buffers = (places[f"default-{name}"].host for name in ("ps", "buffer0", "buffer1"))
    assert hosts == {
        "default-ps": set(),
        "default-trainer0": {server, *buffers},
        "default-buffer0": {server, *buffers},
        "default-buffer1": {server, *buffers},
        "policy0": {server},
        "policy1": {server},
        "actors0-0": {server, buffers[0]},
        "actors0-1": {server, buffers[1]},
        "actors1": {server, buffers[0]},
    }


def test_the_manager_of_a_population_finds_its_members_on_other_machines(tmp_path):
    """It is told by words of its command: their order is that of the members."""
    names = ["one", "two"]
    manager = PopulationManager(
        population=names,
        population_algorithm={
            "type_": "vanilla_pbt", "args": {"ready_interval": 1, "truncation_ratio": 0.5}
        },
        population_sample_stream="population",
    )  # fmt: skip
    actors = [
        actor([INLINE.model_copy(update={"policy_name": name})], samples=[name]) for name in names
    ]
    found = experiment(actors, [], [trainer(name) for name in names])
    config = found.config.model_copy(update={"population_manager": [manager]})
    needs = Scheduling(mem=256)
    groups = TasksGroup(count=1, scheduling=needs)
    scheduling = found.scheduling.model_copy(update={"population_manager": groups})
    trial = on_cluster(replace(found, config=config, scheduling=scheduling), tmp_path)
    assert trial.resources()["population0"] == needs
    processes = copied(described(read_procfile(trial.write())), trial.counts(), {})
    places = {"one-ps": Address("10.0.0.1", 7100), "two-ps": Address("10.0.0.2", 7100)}
    words = [word.value for word in told(processes, places)["population0"].command.words]
    begin = words.index("--parameter-servers")
    assert words[begin + 1 : begin + 3] == ["10.0.0.1:7100", "10.0.0.2:7100"]


def test_other_addresses_without_groups_are_refused(tmp_path):
    on_cluster(MIXED, tmp_path).write()
    words = ["--config", str(tmp_path / "one/policies/default.yaml"), "--env", "CartPole-v1"]
    with pytest.raises(ConfigurationError, match="--moved: has no effect without --agents"):
        load_actor([*words, "--moved", "localhost:7100=10.0.0.1:7100"])


def test_a_cluster_is_asked_for_what_each_worker_needs(tmp_path):
    """A worker that asks for a GPU sees those that its machine gives; all others see none."""
    needs = {
        "trainers": Scheduling.trainer_worker_default(gpu=1),
        "actors": Scheduling.actor_worker_default(mem=512),
        "policies": Scheduling.policy_worker_default(gpu=0.5),
        "buffers": Scheduling.buffer_worker_default(mem=4096),
    }
    groups = {
        kind: TasksGroup(count=len(getattr(MIXED.config, kind)), scheduling=each)
        for kind, each in needs.items()
    }
    found = replace(MIXED, scheduling=ExperimentScheduling(**groups))
    trial = on_cluster(found, tmp_path, gpus=[])
    assert trial.resources() == {
        "default-ps": Scheduling(),
        "default-trainer0": needs["trainers"],
        **dict.fromkeys(("default-buffer0", "default-buffer1"), needs["buffers"]),
        **dict.fromkeys(("policy0", "policy1"), needs["policies"]),
        **dict.fromkeys(("actors0-0", "actors0-1", "actors1"), needs["actors"]),
    }
    lines = read_procfile(trial.write())
    sees = {name for name, line in lines.items() if "CUDA_VISIBLE_DEVICES= " not in line}
    assert sees == {"default-trainer0", "policy0", "policy1"}
    (config,) = (tmp_path / "one/policies").glob("*.yaml")
    assert "gpu: true" in config.read_text()
    without = read_procfile(on_cluster(found, tmp_path / "without").write())
    assert all("CUDA_VISIBLE_DEVICES= " in line for line in without.values())


def test_actors_that_are_alike_are_processes_of_their_own_on_a_cluster(tmp_path):
    found = experiment([actor([INLINE])] * 3, [], [trainer()])
    trial = on_cluster(found, tmp_path)
    processes = copied(described(read_procfile(trial.write())), trial.counts(), {})
    names = [each.name for each in processes if each.program == "relaax-actor"]
    assert names == ["actors0.1", "actors0.2", "actors0.3"]
    here = Trial(found, tmp_path / "here", iter(range(7100, 7200)).__next__)
    (alone,) = (words for name, words in here.lines() if name == "actors0")
    assert alone[alone.index("--actors") + 1] == "3"
