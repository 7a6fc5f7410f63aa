"""Experiments as Python and as YAML: the same object either way, and mistakes by name."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from relaax.configuration.actor_agents import ActorAgents
from relaax.errors import ConfigurationError
from relaax.experiments import (
    ActorWorker,
    AgentSpec,
    BufferWorker,
    Environment,
    EvalManager,
    ExperimentConfig,
    ExperimentScheduling,
    InferenceStream,
    ParameterDB,
    Policy,
    PolicyWorker,
    SampleStream,
    Scheduling,
    TasksGroup,
    Trainer,
    TrainerWorker,
    WorkerInformation,
    register_environment,
    register_policy,
)
from relaax.experiments.checks import mistakes
from relaax.experiments.diagram import mermaid
from relaax.experiments.files import experiments_in, file_of, load_experiment
from relaax.experiments.trial import Trial
from relaax.experiments.written import KINDS, NamedExperiment, from_yaml, to_yaml

POLICY = Policy(type_="section", args={"state_size": [4], "action_size": 2})
INLINE = InferenceStream(
    type_=InferenceStream.Type.INLINE,
    stream_name="",
    policy=POLICY,
    policy_name="default",
    pull_interval_seconds=None,
)
NULL = SampleStream(type_="NULL")
IN_TURN = SampleStream(type_="NAME_ROUND_ROBIN", stream_name="steps", when_full="drop")
PACED = Trainer(type_="ppo", args={"max_staleness": 0})
TOGETHER = SampleStream(type_="NAME_MULTI_AGENT", stream_name="default")
METADATA = ParameterDB(type_=ParameterDB.Type.METADATA)
OTHER = Policy(type_="section", args={"state_size": [4], "action_size": 3})
INDICES = {"index_regex", "inference_stream_idx", "sample_stream_idx"}
EVERY = AgentSpec(index_regex=".*", inference_stream_idx=0, sample_stream_idx=0)


def spec(**fields):
    return EVERY.model_copy(update=fields)


def acting(*specs, samples="default", **fields):
    """An actor worker with an inline policy."""
    return ActorWorker(
        env=Environment(type_="CartPole-v1"),
        inference_streams=[INLINE],
        sample_streams=[samples],
        agent_specs=list(specs),
        **fields,
    )


def actor(streams=("default",), samples=("default",), specs=(EVERY,), info=None, **args):
    return ActorWorker(
        worker_info=info or WorkerInformation(),
        env=Environment(type_="CartPole-v1", args=args),
        inference_streams=list(streams),
        sample_streams=list(samples),
        agent_specs=list(specs),
    )


def trainer(name="default", **others):
    keys = {"trainer": "ppo", "policy": POLICY, "sample_stream": name, **others}
    return TrainerWorker(policy_name=name, **keys)


def policy_worker(name="default", stream="default", policy=POLICY, identifier="latest"):
    return PolicyWorker(
        policy_name=name, inference_stream=stream, policy=policy, policy_identifier=identifier
    )


def of_version(identifier, **fields):
    """An inline stream that plays a version."""
    return INLINE.model_copy(update={"policy_identifier": identifier, **fields})


def manager(name="default", stream="eval_default", tag="my_evaluation", **others):
    return EvalManager(policy_name=name, eval_sample_stream=stream, tag=tag, **others)


def evaluating(inference=None, samples="eval_default", **fields):
    """An actor worker that evaluates."""
    one = spec(**{"send_full_trajectory": True, **fields})
    return ActorWorker(
        env=Environment(type_="CartPole-v1"),
        inference_streams=[inference or of_version("my_evaluation")],
        sample_streams=[samples],
        agent_specs=[one],
        is_evaluation=True,
    )


def evaluated(*eval_managers, actors=None):
    """An experiment with a training, and with evaluations."""
    own = [evaluating()] if actors is None else actors
    return experiment(
        [actor([INLINE]), *own], [], [trainer()], eval_managers=eval_managers or [manager()]
    )


def buffer(taken="steps", drawn="default", **others):
    return BufferWorker(from_sample_stream=taken, to_sample_stream=drawn, **others)


def experiment(actors=(), policies=(), trainers=(), scheduled=None, buffers=(), eval_managers=()):
    config = ExperimentConfig(
        actors=list(actors),
        policies=list(policies),
        buffers=list(buffers),
        trainers=list(trainers),
        eval_managers=list(eval_managers),
    )
    counts = {kind: len(getattr(config, kind)) for kind in KINDS}
    groups = {
        kind: TasksGroup(count=count, scheduling=Scheduling())
        for kind, count in {**counts, **(scheduled or {})}.items()
    }
    return NamedExperiment("example", ExperimentScheduling(**groups), config)


#: Seed 002, "Configuring Your Experiment", for three workers in the place of sixteen.
ATARI = NamedExperiment(
    "example-atari",
    ExperimentScheduling(
        actors=TasksGroup(count=3, scheduling=Scheduling.actor_worker_default(cpu=1, mem=1024)),
        policies=[
            TasksGroup(count=2, scheduling=Scheduling.policy_worker_default(gpu=0.25, mem=10240))
        ],
        trainers=TasksGroup(count=1, scheduling=Scheduling.trainer_worker_default(cpu=4)),
    ),
    ExperimentConfig(
        actors=[actor(game_name="PongNoFrameskip-v4") for _ in range(3)],
        policies=[policy_worker() for _ in range(2)],
        trainers=[trainer(trainer=Trainer(type_="ppo", args={"entropy_beta": 1e-3}))],
        timeout_seconds=7200,
    ),
    {"atari": "games.py:Atari"},
    {"atari_naive_rnn": {"state_size": [84, 84]}},
)


@pytest.mark.parametrize(
    "described",
    [
        ATARI,
        experiment(
            [
                actor([INLINE], info=WorkerInformation(host_key="main")),
                actor(
                    [INLINE],
                    [SampleStream(type_="NULL")],
                    info=WorkerInformation(watch_keys="main"),
                ),
            ],
            [],
            [trainer()],
        ),
        experiment([actor([INLINE], ["steps"])], [], [trainer()], buffers=[buffer()] * 2),
        evaluated(manager(eval_games_per_version=20, eval_time_per_version_seconds=60.0)),
    ],
)
def test_the_same_experiment_is_read_that_was_written(tmp_path, described):
    file = tmp_path / "experiment.yaml"
    file.write_text(to_yaml(described))
    assert from_yaml(file) == described
    assert to_yaml(from_yaml(file)) == to_yaml(described)


def test_workers_that_are_alike_are_written_once_and_streams_by_their_names():
    text = to_yaml(ATARI)
    assert text.count("game_name") == 1
    assert "- count: 3\n" in text
    assert "inference_stream: default\n" in text


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("index_regex", "actors: 0: agent_specs: 0: index_regx: no such key"),
        ("sample_streams", "actors: 0: sample_steams: no such key"),
        ("type_: CartPole-v1", "actors: 0: env: typ: no such key"),
    ],
)
def test_an_unknown_key_is_an_error_with_its_path(tmp_path, written, expected):
    file = tmp_path / "experiment.yaml"
    wrong = expected.split(": ")[-2]
    right = written.partition(":")[0]
    text = to_yaml(experiment([actor([INLINE])], [], [trainer()]))
    file.write_text(text.replace(f"{right}:", f"{wrong}:", 1))
    with pytest.raises(ConfigurationError, match=expected):
        from_yaml(file)


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        (
            experiment([actor([INLINE])] * 16, [], [trainer()], {"actors": 12}),
            "16 actors are configured, and 12 are scheduled: see actors of ExperimentScheduling",
        ),
        (
            experiment([actor(["defualt"])], [policy_worker()], [trainer()]),
            "actors: 0: no policy worker has the inference stream 'defualt'; there are: "
            "default; did you mean default?",
        ),
        (
            experiment(
                [actor([INLINE], info=WorkerInformation(watch_keys=["mian"]))],
                [],
                [trainer(worker_info=WorkerInformation(host_key="main"))],
            ),
            "actors: 0: worker_info: watch_keys: no worker has the host_key 'mian'; "
            "there are: main",
        ),
        (
            evaluated(actors=[evaluating(samples="eval")]),
            "actors: 1: no evaluation manager has the sample stream 'eval'; there are: "
            "eval_default",
        ),
        (
            evaluated(manager(tag="other")),
            "eval_managers: 0: tag: no policy worker and no inline stream of the policy 'default' "
            "has policy_identifier: other, so that the version with this tag is not played",
        ),
        (
            evaluated(manager(), manager()),
            "eval_managers: 1: tag: another manager moves the tag 'my_evaluation' of the policy "
            "'default': each needs a tag of its own",
        ),
        (
            evaluated(manager(), manager("other")),
            "eval_managers: 1: no trainer has the policy 'other'; there are: default",
        ),
        (
            evaluated(manager(stream="default"), actors=[]),
            "eval_managers: 0: eval_sample_stream: trainers take the steps of 'default': give the "
            "evaluation a stream of its own",
        ),
        (
            evaluated(
                manager(),
                manager(stream="eval", tag="other"),
                actors=[evaluating(), evaluating(of_version("other"))],
            ),
            "eval_managers: 1: eval_sample_stream: no actor with is_evaluation: true has an agent "
            "whose episodes go to the stream 'eval'",
        ),
        (
            evaluated(actors=[evaluating(send_full_trajectory=False)]),
            "actors: 1: agent_specs: 0: is_evaluation: needs send_full_trajectory: true, since "
            "whole episodes count",
        ),
        (
            evaluated(actors=[evaluating(require_one_version=True)]),
            "actors: 1: agent_specs: 0: require_one_version: no effect with is_evaluation: true, "
            "where no steps are sent",
        ),
        (
            evaluated(actors=[evaluating(samples=NULL)]),
            "actors: 1: agent_specs: 0: sample_stream_idx: episodes of an evaluation "
            "(is_evaluation: true) go to one stream of an evaluation manager, and here they go "
            "to 0",
        ),
        (
            experiment([actor([INLINE], ["train"])], [], [trainer()]),
            "actors: 0: no trainer has the sample stream 'train'; there are: default",
        ),
        (
            experiment([actor()], [policy_worker("other")], [trainer()]),
            "policies: 0: no trainer has the policy 'other'; there are: default",
        ),
        (
            experiment(
                [actor([INLINE], specs=[EVERY.model_copy(update={"inference_stream_idx": 1})])],
                [],
                [trainer()],
            ),
            "actors: 0: agent_specs: 0: inference_stream_idx: 1 is no place in inference_streams, "
            "which has 1 (the first is 0)",
        ),
        (
            experiment([actor([INLINE], specs=[])], [], [trainer()]),
            "actors: 0: agent_specs: is empty, so that no agent has a policy",
        ),
        (
            experiment([acting(spec(require_one_version=True), ring_size=2)], [], [trainer()]),
            "actors: 0: agent_specs: 0: require_one_version: ring_size is 2, and the policy is "
            "pulled when any of these environments is reset: make it 1",
        ),
        (
            experiment(
                [
                    actor(
                        [INLINE.model_copy(update={"pull_interval_seconds": 5})],
                        specs=[spec(require_one_version=True)],
                    )
                ],
                [],
                [trainer()],
            ),
            "actors: 0: agent_specs: 0: require_one_version: pull_interval_seconds pulls in the "
            "middle of a trajectory: make it None",
        ),
        (
            experiment(
                [actor(specs=[spec(require_one_version=True)])], [policy_worker()], [trainer()]
            ),
            "actors: 0: agent_specs: 0: require_one_version: policy workers of 'default' pull at "
            "any time: make it INLINE",
        ),
        (
            experiment(
                [
                    acting(
                        AgentSpec(**EVERY.model_dump(include=INDICES), send_after_done=True),
                        samples=SampleStream(type_="NULL"),
                    )
                ],
                [],
                [trainer()],
            ),
            "actors: 0: agent_specs: 0: send_after_done: no effect with a sample stream of the "
            "type NULL",
        ),
        (
            experiment(
                [acting(spec(sample_steps=50))],
                [],
                [trainer(trainer=Trainer(type_="ppo", args={"episode_len": 64}))],
            ),
            "actors: 0: agent_specs: 0: sample_steps: samples have 50 rows, and the trainer of "
            "'default' needs the same episode_len; it is 64",
        ),
        (
            experiment(
                [acting(spec(send_full_trajectory=True, pad_trajectory=True), max_num_steps=9)],
                [],
                [trainer()],
            ),
            "actors: 0: agent_specs: 0: pad_trajectory: samples have 10 rows, and the trainer of "
            "'default' needs the same episode_len; its args have none",
        ),
        (
            experiment(
                [acting(spec(send_full_trajectory=True, pad_trajectory=True))], [], [trainer()]
            ),
            "actors: 0: agent_specs: 0: pad_trajectory: needs max_num_steps of the actor worker",
        ),
        (
            experiment([actor([INLINE])], [], [trainer(), trainer(trainer="da3c")]),
            "trainers: 1: another trainer of policy 'default' has other keys; trainers of one "
            "policy are alike",
        ),
        (
            experiment([actor()], [policy_worker(policy=OTHER)], [trainer()]),
            "policies: 0: policy: is another one than that of the trainers of 'default'",
        ),
        (
            experiment([actor([INLINE.model_copy(update={"policy": OTHER})])], [], [trainer()]),
            "actors: 0: inference_streams: 0: policy: is another one than that of the trainers of "
            "'default'",
        ),
        (
            experiment(
                [actor([INLINE, "b"], ["b", "default"], [EVERY])],
                [policy_worker("b", "b")],
                [trainer(), trainer("b")],
            ),
            "actors: 0: agent_specs: 0: the policy 'default' chooses the actions, and the trainer "
            "of the sample stream 'b' learns the policy 'b': steps go to the trainer of the policy "
            "that acts",
        ),
        (
            experiment([actor([INLINE])], [], [trainer(), trainer("b", sample_stream="default")]),
            "trainers: 1: the trainer of another policy, 'default', has the sample stream "
            "'default': each policy needs a stream of its own",
        ),
        (
            experiment([actor([INLINE], [NULL])], [], [trainer(sample_stream=NULL)]),
            "trainers: 0: sample_stream: must be the name of a stream; the type and when_full "
            "of the actors' stream count",
        ),
        (
            experiment([actor([INLINE], ["steps"])], [], [trainer()], buffers=[buffer(IN_TURN)]),
            "buffers: 0: from_sample_stream: must be the name of a stream; the type and when_full "
            "of the actors' stream count",
        ),
        (
            experiment(
                [actor([INLINE], ["steps"])], [], [trainer(trainer=PACED)], buffers=[buffer()]
            ),
            "trainers: 0: trainer: max_staleness: the trainer counts rollouts itself: leave its "
            "buffer workers out",
        ),
        (
            experiment([acting(spec(send_after_done=True))], [], [trainer(trainer=PACED)]),
            "trainers: 0: trainer: max_staleness: steps must come as they are made: leave "
            "sample_steps, send_after_done, send_full_trajectory and send_concise_info out",
        ),
        (
            experiment([actor([INLINE])], [], [trainer(), trainer("b")]),
            "trainers: no actor has an agent whose steps go to the stream 'b'",
        ),
        (
            experiment([actor([INLINE])], [], [trainer()], buffers=[buffer()]),
            "actors: 0: the trainers of the sample stream 'default' draw from buffer workers: name "
            "a stream of these, 'steps'",
        ),
        (
            experiment([actor([INLINE], ["steps"])], [], [trainer()], buffers=[buffer(drawn="d")]),
            "buffers: 0: to_sample_stream: no trainer has the sample stream 'd'; there are: "
            "default",
        ),
        (
            experiment([actor([INLINE])], [], [trainer()], buffers=[buffer("default")]),
            "buffers: 0: from_sample_stream: trainers have the stream 'default', too: give the "
            "buffer's another name, which actors name",
        ),
        (
            experiment(
                [acting(spec(sample_steps=50), samples="steps")],
                [],
                [trainer(trainer=Trainer(type_="ppo", args={"episode_len": 64}))],
                buffers=[buffer()],
            ),
            "actors: 0: agent_specs: 0: sample_steps: samples have 50 rows, and the trainer of "
            "'default' needs the same episode_len; it is 64",
        ),
        (
            experiment([acting(EVERY, samples=TOGETHER)], [], [trainer()]),
            "actors: 0: agent_specs: 0: the stream 'default' is NAME_MULTI_AGENT, which sends the "
            "episodes of an environment's agents together: write send_full_trajectory: true, or "
            "send_concise_info: true",
        ),
        (
            experiment(
                [acting(*[spec(send_full_trajectory=True)] * 2, samples=TOGETHER)], [], [trainer()]
            ),
            "actors: 0: agent_specs: 1: sample_stream_idx: agents of another specification have "
            "the NAME_MULTI_AGENT stream 'default': let one index_regex match all of them",
        ),
        (
            experiment([actor([INLINE])], [policy_worker()], [trainer()]),
            "policies: no actor has an agent whose actions the stream 'default' chooses",
        ),
        (
            experiment([actor([of_version("best")])], [], [trainer()]),
            "actors: 0: agent_specs: 0: the version best chooses the actions, and the trainers of "
            "the sample stream 'default' would learn from its steps as from those of the newest "
            "version: give the agent a sample stream of the type NULL",
        ),
        (
            experiment([actor()], [policy_worker(identifier=7)], [trainer()]),
            "actors: 0: agent_specs: 0: the version 7 chooses the actions, and the trainers of the "
            "sample stream 'default' would learn from its steps as from those of the newest "
            "version: give the agent a sample stream of the type NULL",
        ),
        (
            experiment(
                [actor([INLINE]), actor([of_version({"$match": {}})], [NULL])], [], [trainer()]
            ),
            "actors: 1: inference_streams: 0: policy_identifier: a query needs metadata: give all "
            "workers parameter_db: {type_: METADATA}",
        ),
        (
            experiment([actor([INLINE])], [], [trainer(parameter_db=METADATA)]),
            "actors: 0: inference_streams: 0: parameter_db: is Type.FILESYSTEM, and that of the "
            "first trainer is Type.METADATA: give all workers the same type",
        ),
        (
            experiment(
                [actor([INLINE]), actor(samples=[NULL])],
                [policy_worker(identifier="a"), policy_worker(identifier="b")],
                [trainer()],
            ),
            "policies: 1: policy_identifier: another worker of the stream 'default' has 'a'",
        ),
    ],
)
def test_mistakes_are_named(described, expected):
    assert mistakes(described) == [expected]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"type_": "INLINE"}, "an inline stream needs policy and policy_name"),
        ({"type_": "NAME", "policy_name": "a"}, "policy_name: no effect without type_: INLINE"),
        ({"type_": "REMOTE"}, "must be one of NAME, INLINE, is 'REMOTE'"),
    ],
)
def test_streams_that_cannot_be_are_refused(keys, expected):
    with pytest.raises(ValueError, match=expected):
        InferenceStream(**keys, stream_name="one")


@pytest.mark.parametrize("name", ["x y/z", "..", "", "a.b"])
def test_a_policy_s_name_is_one_of_files_and_processes(name):
    with pytest.raises(ValueError, match="has letters, digits, _ and - alone"):
        trainer(name, sample_stream="default")


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


PYTHON = """
from relaax.experiments import *
from others import NAME


class Small(Experiment):
    def scheduling_setup(self):
        return ExperimentScheduling()

    def initial_setup(self):
        return ExperimentConfig()


register_experiment("first", Small)
register_experiment(NAME, Small)
"""


def test_what_other_processes_cannot_find_is_not_registered():
    with pytest.raises(ConfigurationError, match=r"give a text such as 'my_file.py:MyEnvironment'"):
        register_environment("plant", dict)
    with pytest.raises(ConfigurationError, match="give the keys of the algorithm's section"):
        register_policy("net", dict)


def test_a_file_of_python_has_the_experiments_that_it_registers(tmp_path):
    (tmp_path / "others.py").write_text("NAME = 'second'\n")
    file = tmp_path / "experiments.py"
    file.write_text(PYTHON)
    for _ in range(2):  # names of one run are no names of the next
        assert experiments_in(file) == ["first", "second"]
    assert load_experiment(file, "second").name == "second"
    with pytest.raises(ConfigurationError, match="has first, second: choose one with -e"):
        load_experiment(file)
    with pytest.raises(ConfigurationError, match="no experiment 'secund'; it has first, second"):
        load_experiment(file, "secund")
    assert load_experiment(file.rename(tmp_path / "first.py")).name == "first"


def test_a_wrong_key_in_python_is_an_error_with_its_line(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from relaax.experiments import *\n\nPolicy(tpye_='section')\n")
    with pytest.raises(ConfigurationError, match=r"mine.py, line 3: Policy: .*tpye_: no such key"):
        load_experiment(file)


def test_a_file_is_found_by_its_name_here_and_in_the_folder_of_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = Path("examples/experiments")
    with pytest.raises(ConfigurationError, match=f"nor pong.py.*{examples}/pong.yml"):
        file_of(Path("pong"))
    examples.mkdir(parents=True)
    for file in (examples / "pong.yaml", Path("pong.py")):  # those of this folder come first
        file.touch()
        assert file_of(Path("pong")) == file
    assert file_of(examples / "pong.yaml") == examples / "pong.yaml"


def trial_of(described, directory, gpus=None, registry=None):
    ports = iter(range(7100, 7200))
    return Trial(described, directory, lambda: next(ports), gpus, registry)


def test_a_drawing_has_each_worker_and_what_goes_between_them():
    described = experiment(
        [actor(["default"], ["steps"])] * 3, [policy_worker()], [trainer()], buffers=[buffer()] * 2
    )
    assert mermaid(described).splitlines() == [
        "flowchart LR",
        '    parameters_default[("policy default")]',
        '    trainers_default["trainer of default: ppo"]',
        '    trainers_default -->|"parameters"| parameters_default',
        '    buffers_default["2 buffers of default"]',
        '    buffers_default -->|"samples: default"| trainers_default',
        '    servers_default["policy worker of default"]',
        '    parameters_default -->|"parameters"| servers_default',
        '    actors0["3 actors: CartPole-v1"]',
        '    actors0 <-->|"observations of .*: default"| servers_default',
        '    actors0 -->|"steps of .*: steps"| buffers_default',
    ]


def test_a_drawing_has_the_way_to_each_buffer():
    described = experiment(
        [actor([INLINE], ["steps"]), actor([INLINE], ["more"])],
        [],
        [trainer()],
        buffers=[buffer(), buffer("more")],
    )
    assert mistakes(described) == []
    drawn = mermaid(described)
    assert 'actors0 -->|"steps of .*: steps"| buffers_default' in drawn
    assert 'actors1 -->|"steps of .*: more"| buffers_default' in drawn


def test_a_drawing_has_the_evaluations_and_the_tags_that_they_move():
    lines = mermaid(evaluated()).splitlines()
    manager_at = "evaluations_default_2f_my_5f_evaluation"
    for line in (
        f'{manager_at}["evaluation manager of default"]',
        f'{manager_at} -->|"tag my_evaluation"| parameters_default',
        f'actors1 -->|"episodes of .*: eval_default"| {manager_at}',
    ):
        assert f"    {line}" in lines


def test_a_drawing_takes_any_characters():
    stream = SampleStream(type_="NAME_BROADCAST", stream_name='a "b"')
    described = experiment([actor([INLINE], [stream])], [], [trainer(sample_stream='a "b"')])
    drawn = mermaid(described)
    assert '    parameters_default -->|"parameters for .*, at resets"| actors0\n' in drawn
    assert '|"steps of .*: a #34;b#34; (NAME_BROADCAST)"| trainers_default\n' in drawn


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
        }
    }
    (group,) = trial.agents_of(trial.actor_groups[1])["groups"]
    words = " ".join(group["arguments"])
    assert words.endswith(
        "--policy-identifier my_evaluation --mode eval_stochastic --eval-stream eval_default"
    )
    assert "send_full_trajectory" not in group


@pytest.mark.parametrize("tag", ["latest", "7", "", "a/b"])
def test_the_tag_of_an_evaluation_is_one_that_can_be_moved(tag):
    with pytest.raises(ValidationError, match="a tag has up to 64 letters"):
        manager(tag=tag)


def test_an_evaluation_manager_has_no_keys_of_its_own():
    with pytest.raises(ValidationError, match="is a part of its policy's parameter server"):
        manager(worker_info=WorkerInformation(host_key="main"))


@pytest.mark.parametrize("identifier", ["", True, 1.5, None, 20261129_013100, "{"])
def test_what_is_no_version_is_refused(identifier):
    with pytest.raises(ValidationError, match="policy_identifier"):
        policy_worker(identifier=identifier)


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


def test_a_buffer_that_wants_a_gpu_is_a_mistake():
    described = experiment([actor([INLINE], ["steps"])], [], [trainer()], buffers=[buffer()])
    wanted = TasksGroup(count=1, scheduling=Scheduling(gpu=0.5))
    scheduling = described.scheduling.model_copy(update={"buffers": wanted})
    assert mistakes(replace(described, scheduling=scheduling)) == [
        "scheduling: buffers: gpu: no effect: a buffer worker computes nothing"
    ]


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


def test_a_stream_in_turn_beside_another_is_a_mistake():
    in_turn = SampleStream(type_="NAME_ROUND_ROBIN", stream_name="default")
    spec = EVERY.model_copy(update={"sample_stream_idx": [0, 1]})
    described = experiment([actor([INLINE], [in_turn, "default"], [spec])], [], [trainer()])
    (mistake,) = mistakes(described)
    assert "a stream NAME_ROUND_ROBIN gives each step to one trainer" in mistake
