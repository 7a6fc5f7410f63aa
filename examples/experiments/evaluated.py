"""PPO on CartPole-v1, whose versions are evaluated one after another while it is learnt.

relaax-experiment run examples/experiments/evaluated.py -f trial1
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
    Scheduling,
    TasksGroup,
    Trainer,
    TrainerWorker,
    register_experiment,
)

POLICY_NAME = "default"
TAG = "my_evaluation"
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


def actor(identifier: str, samples: str, *, is_evaluation: bool) -> ActorWorker:
    """Return an actor worker that plays this version of the policy."""
    stream = InferenceStream(
        type_=InferenceStream.Type.INLINE,
        stream_name="",
        policy=POLICY,
        policy_name=POLICY_NAME,
        policy_identifier=identifier,
        pull_interval_seconds=None,
        parameter_db=DATABASE,
    )
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

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        return ExperimentScheduling(
            actors=TasksGroup(count=3, scheduling=Scheduling.actor_worker_default()),
            trainers=TasksGroup(count=1, scheduling=Scheduling.trainer_worker_default()),
            eval_managers=TasksGroup(count=1, scheduling=Scheduling.eval_manager_default()),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        training = actor("latest", POLICY_NAME, is_evaluation=False)
        return ExperimentConfig(
            actors=[training, training, actor(TAG, "eval_default", is_evaluation=True)],
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
                    eval_sample_stream="eval_default",
                    tag=TAG,
                    eval_games_per_version=20,
                )
            ],
        )


register_experiment("evaluated", Evaluated)
