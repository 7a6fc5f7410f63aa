"""Workers of small experiments, and a trial of one."""

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
)
from relaax.experiments.trial import Trial
from relaax.experiments.written import KINDS, NamedExperiment

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
IN_MONGODB = ParameterDB(
    type_="METADATA", database_mongodb="mongodb://me:secret@host/relaax", database_expire_days=7
)
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


def trial_of(described, directory, gpus=None, registry=None, **others):
    ports = iter(range(7100, 7200))
    return Trial(described, directory, lambda: next(ports), gpus, registry, **others)
