"""What does not fit together in an experiment is named before anything starts."""

from dataclasses import replace

import pytest
from experiment_parts import (
    EVERY,
    IN_MONGODB,
    IN_TURN,
    INDICES,
    INLINE,
    METADATA,
    NULL,
    OTHER,
    PACED,
    TOGETHER,
    acting,
    actor,
    buffer,
    evaluated,
    evaluating,
    experiment,
    manager,
    of_version,
    policy_worker,
    spec,
    trainer,
)
from pydantic import ValidationError

from relaax.experiments import (
    AgentSpec,
    Condition,
    Curriculum,
    InferenceStream,
    SampleStream,
    Scheduling,
    TasksGroup,
    Trainer,
    WorkerInformation,
)
from relaax.experiments.checks import mistakes


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
            "actors: 1: no evaluation or population manager has the sample stream 'eval'; there "
            "are: eval_default",
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
            "actors: 1: is_evaluation: no agent has a sample stream of an evaluation manager, or "
            "of a population's",
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
            "first trainer is Type.METADATA: give all workers the same",
        ),
        (
            experiment(
                [actor([of_version("a", parameter_db=METADATA)], [NULL])],
                [],
                [trainer(parameter_db=IN_MONGODB)],
            ),
            "actors: 0: inference_streams: 0: parameter_db: is Type.METADATA, and that of the "
            "first trainer is Type.METADATA with a MongoDB of 7 days: give all workers the same",
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


@pytest.mark.parametrize("tag", ["latest", "7", "", "a/b"])
def test_the_tag_of_an_evaluation_is_one_that_can_be_moved(tag):
    with pytest.raises(ValidationError, match="a tag has up to 64 letters"):
        manager(tag=tag)


def test_an_evaluation_manager_has_no_keys_of_its_own():
    with pytest.raises(ValidationError, match="is a part of its policy's parameter server"):
        manager(worker_info=WorkerInformation(host_key="main"))


WINS = Condition(type_="SimpleBound", args={"field": "win_rate", "lower_limit": 0.8})


def growing(name="corridor", conditions=(WINS,), **others):
    return Curriculum(
        type_=Curriculum.Type.Linear, name=name, conditions=list(conditions), **others
    )


@pytest.mark.parametrize(
    ("managers", "given", "expected"),
    [
        ([growing()], None, []),
        ([growing(stages=["near", "far"])], growing(conditions=()), []),
        ([growing(stages=["near", "far"])], growing(stages=["near", "far"]), []),
        (
            [growing(conditions=())],
            None,
            [
                "eval_managers: 0: curriculum_config: conditions: are empty: say when a stage is "
                "over"
            ],
        ),
        (
            [growing(), growing("second")],
            growing(),
            [
                "eval_managers: 1: curriculum_config: another manager of the policy 'default' has "
                "a curriculum: a policy has one",
                "actors: 0: curriculum_config: is missing: there are the curricula corridor, "
                "second, and this says which one's stage the environments are reset with",
            ],
        ),
        (
            [growing()],
            growing("coridor"),
            [
                "actors: 1: curriculum_config: no evaluation manager has the curriculum 'coridor'; "
                "there are: corridor; did you mean corridor?"
            ],
        ),
        (
            [growing()],
            growing(stages=["other"]),
            [
                "actors: 1: curriculum_config: stages and conditions are those of the evaluation "
                "manager: leave them out here"
            ],
        ),
    ],
)
def test_what_does_not_fit_together_about_a_curriculum(managers, given, expected):
    tags = ["my_evaluation", "other"]
    described = evaluated(
        *(
            manager(tag=tag, curriculum_config=each)
            for tag, each in zip(tags, managers, strict=False)
        ),
        actors=[evaluating().model_copy(update={"curriculum_config": given})],
    )
    assert mistakes(described) == expected


@pytest.mark.parametrize("identifier", ["", True, 1.5, None, 20261129_013100, "{"])
def test_what_is_no_version_is_refused(identifier):
    with pytest.raises(ValidationError, match="policy_identifier"):
        policy_worker(identifier=identifier)


def test_a_buffer_that_wants_a_gpu_is_a_mistake():
    described = experiment([actor([INLINE], ["steps"])], [], [trainer()], buffers=[buffer()])
    wanted = TasksGroup(count=1, scheduling=Scheduling(gpu=0.5))
    scheduling = described.scheduling.model_copy(update={"buffers": wanted})
    assert mistakes(replace(described, scheduling=scheduling)) == [
        "scheduling: buffers: gpu: no effect: a buffer worker computes nothing"
    ]


def test_a_stream_in_turn_beside_another_is_a_mistake():
    in_turn = SampleStream(type_="NAME_ROUND_ROBIN", stream_name="default")
    spec = EVERY.model_copy(update={"sample_stream_idx": [0, 1]})
    described = experiment([actor([INLINE], [in_turn, "default"], [spec])], [], [trainer()])
    (mistake,) = mistakes(described)
    assert "a stream NAME_ROUND_ROBIN gives each step to one trainer" in mistake
