"""PPO on CartPole-v1, whose versions are evaluated one after another while it is learnt.

relaax-experiment run examples/experiments/evaluated.py -e evaluated -f trial1

Two experiments: the evaluating actor worker has the policy itself, or asks a policy worker.
"""

from relaax.experiments import (
    ActorWorker,
    AgentSpec,
    Environment,
    EvalManager,
    Experiment,
    ExperimentConfig,
    ExperimentScheduling,
    InferenceStream,
    ParameterDB,
    Policy,
    PolicyWorker,
    Scheduling,
    TasksGroup,
    Trainer,
    TrainerWorker,
    register_experiment,
)

POLICY_NAME = "default"
TAG = "my_evaluation"
#: Of episodes that are evaluated.
SAMPLES = "eval_default"
POLICY = Policy(
    type_="section", args={"state_size": [4], "action_size": 2, "hidden_layers": [64, 64]}
)
DATABASE = ParameterDB(type_=ParameterDB.Type.METADATA)
TRAINER = Trainer(
    type_="ppo",
    args={
        "episode_len": 128,
        "rollouts_per_batch": 4,
        "passes": 10,
        "minibatches": 4,
        "initial_learning_rate": 1e-3,
        "max_global_step": 60_000,
        "seed": 1,
    },
)


def inline(identifier: str) -> InferenceStream:
    """Return a stream whose actor worker has this version of the policy itself."""
    return InferenceStream(
        type_=InferenceStream.Type.INLINE,
        stream_name="",
        policy=POLICY,
        policy_name=POLICY_NAME,
        policy_identifier=identifier,
        pull_interval_seconds=None,
        parameter_db=DATABASE,
    )


def actor(
    stream: InferenceStream | str, samples: str, *, is_evaluation: bool = False
) -> ActorWorker:
    """Return an actor worker that chooses by a stream, and evaluates or lets trainers learn."""
    spec = AgentSpec(
        index_regex=".*",
        inference_stream_idx=0,
        sample_stream_idx=0,
        send_full_trajectory=is_evaluation,
    )
    return ActorWorker(
        env=Environment(type_="CartPole-v1"),
        inference_streams=[stream],
        sample_streams=[samples],
        agent_specs=[spec],
        is_evaluation=is_evaluation,
    )


class Evaluated(Experiment):
    """Two actor workers train, and one plays the version with the evaluation's tag."""

    policy_workers = 0
    evaluated: InferenceStream | str = inline(TAG)

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        return ExperimentScheduling(
            actors=TasksGroup(count=3, scheduling=Scheduling.actor_worker_default()),
            policies=TasksGroup(
                count=self.policy_workers, scheduling=Scheduling.policy_worker_default()
            ),
            trainers=TasksGroup(count=1, scheduling=Scheduling.trainer_worker_default()),
            eval_managers=TasksGroup(count=1, scheduling=Scheduling.eval_manager_default()),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        training = actor(inline("latest"), POLICY_NAME)
        return ExperimentConfig(
            actors=[training, training, actor(self.evaluated, SAMPLES, is_evaluation=True)],
            policies=[
                PolicyWorker(
                    policy_name=POLICY_NAME,
                    inference_stream="eval_actions",
                    policy=POLICY,
                    policy_identifier=TAG,
                    parameter_db=DATABASE,
                )
                for _ in range(self.policy_workers)
            ],
            trainers=[
                TrainerWorker(
                    policy_name=POLICY_NAME,
                    trainer=TRAINER,
                    policy=POLICY,
                    sample_stream=POLICY_NAME,
                    push_frequency_steps=10,
                    parameter_db=DATABASE,
                )
            ],
            eval_managers=[
                EvalManager(
                    policy_name=POLICY_NAME,
                    eval_sample_stream=SAMPLES,
                    tag=TAG,
                    eval_games_per_version=20,
                )
            ],
        )


class EvaluatedRemote(Evaluated):
    """A policy worker chooses the actions that are evaluated."""

    policy_workers = 1
    evaluated = "eval_actions"


register_experiment("evaluated", Evaluated)
register_experiment("evaluated-remote", EvaluatedRemote)
