"""The files and command lines of a trial on this machine."""

import json
from pathlib import Path

import pytest
import yaml
from experiment_parts import (
    EVERY,
    IN_MONGODB,
    INLINE,
    METADATA,
    NULL,
    POLICY,
    TOGETHER,
    acting,
    actor,
    buffer,
    evaluated,
    experiment,
    manager,
    of_version,
    policy_worker,
    spec,
    trainer,
    trial_of,
)

from relaax.configuration import load_parameter_server
from relaax.configuration.actor_agents import ActorAgents
from relaax.configuration.wandb_runs import read_wandb_runs
from relaax.errors import ConfigurationError
from relaax.experiments import (
    AgentSpec,
    Condition,
    Curriculum,
    ExperimentScheduling,
    ParameterDB,
    PolicyWorker,
    SampleStream,
    Scheduling,
    TasksGroup,
    Trainer,
    WorkerInformation,
)
from relaax.experiments.checks import mistakes
from relaax.experiments.written import NamedExperiment, from_yaml


def test_no_policy_has_the_file_of_another_part_of_a_trial(tmp_path):
    names = ("experiment", "actors0", "Procfile")
    described = experiment(
        [actor([INLINE.model_copy(update={"policy_name": name})], [name]) for name in names],
        [],
        [trainer(name) for name in names],
    )
    assert mistakes(described) == []
    trial_of(described, tmp_path).write()
    assert from_yaml(tmp_path / "experiment.yaml") == described
    files = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.yaml")}
    of_policies = {f"policies/{name}.yaml" for name in names}
    assert files == {"experiment.yaml", *of_policies, *(f"actors/actors{n}.yaml" for n in range(3))}


def test_actors_choose_at_policy_workers_and_send_steps_to_trainers_by_their_index(tmp_path):
    described = experiment(
        [actor() for _ in range(3)], [policy_worker() for _ in range(2)], [trainer(), trainer()]
    )
    trial = trial_of(described, tmp_path / "trial")
    lines = dict(trial.lines())
    assert [name for name in lines if name.startswith("policy")] == ["policy0", "policy1"]
    name = "names://localhost:7100/example/trial/default"
    assert all(lines[policy][-2:] == ["--name", name] for policy in ("policy0", "policy1"))
    for group, learner, count in zip(trial.actor_groups, (7101, 7102), "21", strict=True):
        words = lines[group.name]
        assert words[words.index("--actors") + 1] == count
        (agents,) = trial.agents_of(group)["groups"]
        words = agents["arguments"]
        assert words[words.index("--learner") + 1] == f"localhost:{learner}"
        begin = words.index("--inference-servers")
        assert words[begin + 1] == name


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(None, ["episode", "1"]), (5, ["second", "5"]), (0.5, ["second", "0.5"])],
)
def test_inline_policies_are_pulled_at_resets_or_by_the_clock(tmp_path, seconds, expected):
    stream = INLINE.model_copy(update={"pull_interval_seconds": seconds})
    trial = trial_of(experiment([actor([stream])], [], [trainer()]), tmp_path)
    (group,) = trial.actor_groups
    (agents,) = trial.agents_of(group)["groups"]
    words = agents["arguments"]
    begin = words.index("--fetch-parameter-mode")
    assert [words[begin + 1], words[begin + 3]] == expected


def test_each_policy_has_a_database_and_who_pulls_says_which_version(tmp_path):
    query = [{"$sort": {"md.return": -1}}, {"$limit": 1}]
    past = of_version(query, parameter_db=METADATA)
    learning = INLINE.model_copy(update={"parameter_db": METADATA})
    worker = PolicyWorker(
        policy_name="default", inference_stream="past", policy=POLICY,
        policy_identifier="20261129_013100", parameter_db=METADATA,
    )  # fmt: skip
    described = experiment(
        [actor([learning]), actor([past, "past"], [NULL], [EVERY, spec(inference_stream_idx=1)])],
        [worker],
        [trainer(parameter_db=METADATA, push_frequency_steps=100, push_frequency_seconds=60)],
    )
    assert mistakes(described) == []
    trial = trial_of(described, tmp_path / "one")
    trial.write()
    assert from_yaml(tmp_path / "one" / "experiment.yaml") == described
    written = yaml.safe_load((tmp_path / "one" / "policies" / "default.yaml").read_text())
    options = written["relaax-parameter-server"]
    assert {key: options[key] for key in options if "database" in key or "push" in key} == {
        "--database-dir": str(tmp_path / "one" / "policies" / "default" / "database"),
        "--database-name": "example/one/default",
        "--database-type": "metadata",
        "--push-frequency-seconds": 60,
        "--push-frequency-steps": 100,
    }
    assert dict(trial.lines())["policy0"][-2:] == ["--policy-identifier", "20261129_013100"]
    first, second = trial.actor_groups
    assert "--policy-identifier" not in trial.agents_of(first)["groups"][0]["arguments"]
    words = trial.agents_of(second)["groups"][0]["arguments"]
    assert json.loads(words[words.index("--policy-identifier") + 1]) == query


def test_a_mongodb_of_the_metadata_is_the_parameter_servers_alone(tmp_path):
    described = experiment(
        [actor([INLINE.model_copy(update={"parameter_db": IN_MONGODB})])],
        [],
        [trainer(parameter_db=IN_MONGODB)],
    )
    assert mistakes(described) == []
    trial = trial_of(described, tmp_path / "one", has_wandb=True)
    trial.write()
    file = tmp_path / "one" / "policies" / "default.yaml"
    options = load_parameter_server(["--config", str(file)]).options
    assert options.database_mongodb == "mongodb://me:secret@host/relaax"
    assert options.database_expire_days == 7
    runs = [w[w.index("--wandb-runs") + 1] for _, w in trial.lines() if "--wandb-runs" in w]
    assert len(runs) == 2
    assert not any("secret" in Path(file).read_text() for file in runs)


@pytest.mark.parametrize("keys", [{"database_mongodb": "mongodb://h"}, {"database_expire_days": 1}])
def test_a_database_without_metadata_has_no_mongodb_and_no_expiry(keys):
    with pytest.raises(ValueError, match=rf"{next(iter(keys))}: no effect without type_: METADATA"):
        ParameterDB(**keys)


def test_the_stage_of_a_curriculum_comes_from_the_parameter_server_of_its_policy(tmp_path):
    wins = Condition(type_="SimpleBound", args={"field": "win_rate", "lower_limit": 0.8})
    curriculum = Curriculum(type_="Linear", name="one", stages=["a", "b"], conditions=[wins])
    trial = trial_of(evaluated(manager(curriculum_config=curriculum)), tmp_path / "one")
    trial.write()
    file = tmp_path / "one" / "policies" / "default.yaml"
    configuration = load_parameter_server(["--config", str(file)])
    assert configuration.options.eval_managers["my_evaluation"].curriculum_config == curriculum
    lines = dict(trial.lines())
    for name in ("actors0", "actors1"):
        words = lines[name]
        assert words[words.index("--curriculum-server") + 1] == "localhost:7100"


def test_workers_have_runs_whose_names_their_information_overrides(tmp_path):
    info = WorkerInformation(wandb_entity="us", wandb_group="all", wandb_name="mine")
    described = evaluated(manager(worker_info=info))
    trial = trial_of(described, tmp_path / "one", has_wandb=True)
    trial.write()
    found = {}
    for name, words in trial.lines():
        runs = read_wandb_runs(Path(words[words.index("--wandb-runs") + 1]))
        found[name] = [(r.entity, r.project, r.group, r.job_type, r.name) for r in runs]
    assert found == {
        "default-ps": [("us", "example", "all", "eval_manager", "mine")],
        "default-trainer0": [(None, "example", "one", "trainer", "default")],
        "actors0": [(None, "example", "one", "actor", "unnamed")],
        "actors1": [(None, "example", "one", "actor", "unnamed")],
    }
    (run,) = runs
    assert run.config["agent_specs.0.send_full_trajectory"] is True
    assert run.config["env.type_"] == "CartPole-v1"
    assert not any("--wandb-runs" in words for _, words in trial_of(described, tmp_path).lines())


def test_a_buffer_has_a_run_of_its_own(tmp_path):
    described = experiment([actor([INLINE], ["steps"])], [], [trainer()], buffers=[buffer()])
    trial = trial_of(described, tmp_path / "one", has_wandb=True)
    trial.write()
    words = dict(trial.lines())["default-buffer0"]
    (run,) = read_wandb_runs(Path(words[words.index("--wandb-runs") + 1]))
    assert (run.job_type, run.name) == ("buffer", "default")


def test_each_process_answers_operators_at_a_port_of_its_own(tmp_path):
    described = experiment([actor(), actor()], [policy_worker()], [trainer()])
    ports = iter(range(7300, 7400))
    http_ports = lambda count: [next(ports) for _ in range(count)]  # noqa: E731
    trial = trial_of(described, tmp_path / "one", http_ports=http_ports)
    assert trial.for_operators == {
        "default-ps": ["localhost:7300"],
        "default-trainer0": ["localhost:7301"],
        "policy0": ["localhost:7302"],
        "actors0": ["localhost:7303", "localhost:7304"],
    }
    for name, words in trial.lines():
        assert words[words.index("--http-bind") + 1] == trial.for_operators[name][0]
    labels = {each["targets"][0]: each["labels"] for each in trial.targets()}
    assert list(labels) == [f"localhost:{port}" for port in range(7300, 7305)]
    assert labels["localhost:7301"] == {
        "job": "relaax-learner",
        "experiment": "example",
        "trial": "one",
        "worker": "trainer",
        "worker_id": "0",
        "process": "default-trainer0",
        "policy": "default",
    }
    actor_labels = labels["localhost:7304"]
    assert (actor_labels["worker"], actor_labels["worker_id"]) == ("actor", "1")
    assert "policy" not in actor_labels


def test_the_episodes_of_an_evaluation_go_to_the_manager_that_moves_its_tag(tmp_path):
    described = evaluated(manager(eval_games_per_version=20))
    assert mistakes(described) == []
    trial = trial_of(described, tmp_path / "one")
    trial.write()
    written = yaml.safe_load((tmp_path / "one" / "policies" / "default.yaml").read_text())
    assert written["relaax-parameter-server"]["--eval-managers"] == {
        "my_evaluation": {
            "eval_sample_stream": "eval_default",
            "eval_games_per_version": 20,
            "eval_time_per_version_seconds": None,
            "eval_target_tag": "latest",
            "curriculum_config": None,
        }
    }
    (group,) = trial.agents_of(trial.actor_groups[1])["groups"]
    words = " ".join(group["arguments"])
    assert words.endswith(
        "--policy-identifier my_evaluation --mode eval_stochastic --eval-stream eval_default"
    )
    assert "send_full_trajectory" not in group


def test_what_a_specification_says_of_samples_is_written_for_its_agents(tmp_path):
    described = experiment(
        [acting(spec(sample_steps=16, bootstrap_steps=2), ring_size=3, max_num_steps=99)],
        [],
        [trainer()],
    )
    trial = trial_of(described, tmp_path)
    (group,) = trial.actor_groups
    content = trial.agents_of(group)
    assert (content["ring_size"], content["max_num_steps"]) == (3, 99)
    (agents,) = content["groups"]
    assert (agents["sample_steps"], agents["bootstrap_steps"]) == (16, 2)
    assert ActorAgents.model_validate(content).groups[0].sample_steps == 16


@pytest.mark.parametrize(
    ("samples", "expected"), [("default", "--deterministic"), (NULL, "eval_deterministic")]
)
def test_deterministic_actions_may_be_learnt_from_or_not(tmp_path, samples, expected):
    described = experiment(
        [acting(spec(deterministic_action=True), samples=samples)], [], [trainer()]
    )
    trial = trial_of(described, tmp_path)
    (group,) = trial.actor_groups
    assert trial.agents_of(group)["groups"][0]["arguments"][-1] == expected


def test_each_specification_has_its_policy_and_its_stream(tmp_path):
    """Seed 002, "Matching Agents to streams", example 2, with one stream of each type."""
    specs = [
        AgentSpec(index_regex="[0-3]", inference_stream_idx=0, sample_stream_idx=0),
        AgentSpec(index_regex="[3-6]", inference_stream_idx=1, sample_stream_idx=1),
    ]
    described = experiment(
        [actor(["inf1", INLINE], ["train", NULL], specs), actor([INLINE])],
        [policy_worker("other", "inf1")],
        [trainer(), trainer("other", sample_stream="train")],
    )
    assert mistakes(described) == []
    trial = trial_of(described, tmp_path / "trial")
    group, _ = trial.actor_groups
    first, second = trial.agents_of(group)["groups"]
    other, default = (
        str(tmp_path / "trial" / "policies" / f"{name}.yaml") for name in ("other", "default")
    )
    assert first["index_regex"] == "[0-3]"
    assert first["arguments"] == [
        "--config", other,
        "--inference-servers", "names://localhost:7102/example/trial/inf1",
        "--learner", "localhost:7103",
    ]  # fmt: skip
    assert second["index_regex"] == "[3-6]"
    assert second["arguments"][:2] == ["--config", default]
    assert second["arguments"][-2:] == ["--mode", "eval_stochastic"]


def test_streams_are_registered_in_an_etcd_on_demand(tmp_path):
    described = experiment([actor(["a/b"])], [policy_worker(stream="a/b")], [trainer()])
    trial = trial_of(described, tmp_path / "trial", registry="etcd://names:2379")
    name = "etcd://names:2379/example/trial/a%2Fb"
    assert dict(trial.lines())["policy0"][-2:] == ["--name", name]
    (group,) = trial.actor_groups
    assert name in trial.agents_of(group)["groups"][0]["arguments"]


def gpu_of(procfile, line):
    """The devices that the process of a line sees."""
    (text,) = (each for each in procfile.read_text().splitlines() if each.startswith(f"{line}: "))
    return text.partition("CUDA_VISIBLE_DEVICES=")[2].partition(" ")[0]


def with_gpus(described, **gpus):
    """The same experiment, whose workers of a kind want a GPU or a part of one."""
    groups = {
        kind: TasksGroup(
            count=len(getattr(described.config, kind)), scheduling=Scheduling(gpu=gpus.get(kind, 0))
        )
        for kind in ("actors", "policies", "trainers")
    }
    return NamedExperiment("example", ExperimentScheduling(**groups), described.config)


#: One trainer and five policy workers.
SIX = experiment([actor()], [policy_worker() for _ in range(5)], [trainer()])


def test_four_workers_share_a_gpu_that_each_wants_a_quarter_of_and_others_see_none(tmp_path):
    trial = trial_of(with_gpus(SIX, policies=0.25, trainers=1), tmp_path / "trial", ["4", "6", "7"])
    procfile = trial.write()
    assert gpu_of(procfile, "default-trainer0") == "4"
    assert [gpu_of(procfile, f"policy{number}") for number in range(5)] == ["6"] * 4 + ["7"]
    assert gpu_of(procfile, "actors0") == gpu_of(procfile, "default-ps") == ""
    assert "gpu: true" in (tmp_path / "trial" / "policies" / "default.yaml").read_text()


def test_workers_that_want_more_gpus_than_there_are_are_named(tmp_path):
    described = with_gpus(SIX, policies=0.25, trainers=1)
    with pytest.raises(ConfigurationError, match="no GPU left for policy4: 2 are here"):
        trial_of(described, tmp_path, ["0", "1"])
    with pytest.raises(ConfigurationError, match="no GPU left for default-trainer0: 0 are here"):
        trial_of(described, tmp_path, [])
    crowd = with_gpus(experiment([actor([INLINE])] * 5, [], [trainer()]), actors=0.25)
    with pytest.raises(ConfigurationError, match=r"the 5 actors of actors0 want 1\.25 GPUs"):
        trial_of(crowd, tmp_path, ["0", "1"])


def test_a_policy_s_parameter_server_has_the_keys_of_its_trainers(tmp_path):
    main, other = WorkerInformation(host_key="main"), WorkerInformation(watch_keys=["main"])
    described = experiment(
        [actor([INLINE], info=other)], [policy_worker()], [trainer(worker_info=main)] * 2
    )
    found = trial_of(described, tmp_path).information()
    assert found == {
        **dict.fromkeys(("default-ps", "default-trainer0", "default-trainer1"), main),
        "policy0": WorkerInformation(),
        "actors0": other,
    }


def test_on_demand_all_workers_run_without_a_gpu(tmp_path):
    trial = trial_of(with_gpus(SIX, policies=0.25, trainers=1), tmp_path / "trial", None)
    assert gpu_of(trial.write(), "policy0") == ""
    assert "gpu" not in (tmp_path / "trial" / "policies" / "default.yaml").read_text()


def test_a_trial_goes_on_and_another_experiment_does_not_take_its_place(tmp_path):
    place = tmp_path / "trial1"
    described = experiment([actor([INLINE])], [], [trainer()])
    trial_of(described, place).write()
    procfile = trial_of(described, place).write()
    assert from_yaml(place / "experiment.yaml") == described
    assert procfile.read_text().startswith(
        "default-ps: exec env CUDA_VISIBLE_DEVICES= relaax-parameter-server --config "
    )
    other = experiment([actor([INLINE])] * 2, [], [trainer()])
    trial_of(other, place).write()  # nothing was started: a mistake may be mended
    saved = place / "policies" / "default" / "checkpoints" / "cp-1.json"
    saved.parent.mkdir(parents=True)
    saved.touch()
    trial_of(other, place).write()
    with pytest.raises(ConfigurationError, match="another form of this experiment"):
        trial_of(described, place).write()


def test_a_trial_that_goes_on_may_end_later(tmp_path):
    for args in ({"max_global_step": 100}, {"max_global_step": 200, "anneal_from": 100}):
        longer = trainer(trainer=Trainer(type_="ppo", args=args))
        place = tmp_path / "trial1"
        trial_of(experiment([actor([INLINE])], [], [longer]), place).write()
        saved = place / "policies" / "default" / "checkpoints" / "cp-1.json"
        saved.parent.mkdir(parents=True, exist_ok=True)
        saved.touch()
    section = yaml.safe_load((place / "policies" / "default.yaml").read_text())["algorithm"]
    assert section["max_global_step"] == 200
    other = actor([INLINE], max_global_step=300)  # of the environment
    with pytest.raises(ConfigurationError, match="another form of this experiment"):
        trial_of(experiment([other], [], [longer]), place).write()


def deliveries(tmp_path, streams, indices):
    """The words that say where agents' steps go, for two trainers of the stream ``default``."""
    spec = EVERY.model_copy(update={"sample_stream_idx": indices})
    other = INLINE.model_copy(update={"policy_name": "other"})
    described = experiment(
        [actor([INLINE], streams, [spec]), actor([other], ["second"]), actor([INLINE])],
        [],
        [trainer(), trainer(), trainer("other", sample_stream="second")],
    )
    assert mistakes(described) == []
    trial = trial_of(described, tmp_path / "trial")
    group = trial.actor_groups[0]
    (agents,) = trial.agents_of(group)["groups"]
    words = agents["arguments"]
    begin = min(words.index(each) for each in ("--learner", "--replay-servers") if each in words)
    return words[begin:]


def test_a_sample_stream_says_which_trainers_get_steps_and_whether_actors_wait(tmp_path):
    in_turn = SampleStream(type_="NAME_ROUND_ROBIN", stream_name="default", when_full="drop")
    to_all = SampleStream(type_="NAME_BROADCAST", stream_name="default")
    both = ["--replay-servers", "localhost:7101", "localhost:7102", "--spread"]
    found = deliveries(tmp_path, [in_turn], 0)
    assert found == [*both, "round-robin", "--when-full", "drop"]
    assert deliveries(tmp_path / "second", [to_all], 0) == [*both, "broadcast"]


def test_episodes_of_several_agents_are_sent_together_to_one_trainer(tmp_path):
    one = acting(spec(send_full_trajectory=True), samples=TOGETHER)
    trial = trial_of(experiment([one] * 2, [], [trainer()] * 2), tmp_path / "trial")
    for group, learner in zip(trial.actor_groups, (7101, 7102), strict=True):
        (agents,) = trial.agents_of(group)["groups"]
        assert agents["is_team"]
        assert agents["arguments"][-2:] == ["--learner", f"localhost:{learner}"]


def test_steps_go_to_buffers_and_trainers_draw_from_them(tmp_path):
    info = WorkerInformation(watch_keys=["main"])
    described = experiment(
        [actor([INLINE], ["steps"])] * 2,
        [],
        [trainer(worker_info=WorkerInformation(host_key="main"))],
        buffers=[buffer(worker_info=info)] * 2,
    )
    assert mistakes(described) == []
    trial = trial_of(described, tmp_path / "trial")
    lines = dict(trial.lines())
    for number, group in enumerate(trial.actor_groups):
        name, address = f"default-buffer{number}", f"localhost:{7102 + number}"
        assert lines[name][0] == "relaax-replay-server"
        assert lines[name][lines[name].index("--bind") + 1] == address
        assert trial.information()[name] == info
        (agents,) = trial.agents_of(group)["groups"]
        assert agents["arguments"][-2:] == ["--learner", address]
    servers = ["localhost:7102", "localhost:7103"]
    assert lines["default-trainer0"][-3:] == ["--replay-servers", *servers]


def test_an_agent_may_send_each_step_to_several_streams(tmp_path):
    found = deliveries(tmp_path, ["default", "second", SampleStream(type_="NULL")], [0, 1, 2])
    expected = ["localhost:7101", "localhost:7104", "--spread", "broadcast"]
    assert found == ["--replay-servers", *expected]
