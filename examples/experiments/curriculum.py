"""PPO in a corridor that becomes longer: a stage is over when the evaluated version wins in it.

relaax-experiment run examples/experiments/curriculum.py -e curriculum -f trial1
relaax-experiment run examples/experiments/curriculum.py -e far-at-once -f trial1

Two experiments: the second one has the longest corridor from its beginning.
"""

from pathlib import Path

from relaax.experiments import (
    ActorWorker,
    AgentSpec,
    Condition,
    Curriculum,
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
    register_environment,
    register_experiment,
)

POLICY_NAME = "default"
TAG = "evaluation"
#: Of episodes that are evaluated.
SAMPLES = "eval_default"
POLICY = Policy(
    type_="section", args={"state_size": [16], "action_size": 3, "hidden_layers": [64, 64]}
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
        "entropy_beta": 0.01,
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


def actor(identifier: str, samples: str, *, is_evaluation: bool = False) -> ActorWorker:
    """Return an actor worker that evaluates a version, or lets the trainer learn."""
    spec = AgentSpec(
        index_regex=".*",
        inference_stream_idx=0,
        sample_stream_idx=0,
        send_full_trajectory=is_evaluation,
    )
    return ActorWorker(
        env=Environment(type_="corridor"),
        inference_streams=[inline(identifier)],
        sample_streams=[samples],
        agent_specs=[spec],
        is_evaluation=is_evaluation,
    )


class Growing(Experiment):
    """Two actor workers train, and one plays the version with the evaluation's tag."""

    stages = ("near", "middle", "far")

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        return ExperimentScheduling(
            actors=TasksGroup(count=3, scheduling=Scheduling.actor_worker_default()),
            trainers=TasksGroup(count=1, scheduling=Scheduling.trainer_worker_default()),
            eval_managers=TasksGroup(count=1, scheduling=Scheduling.eval_manager_default()),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        training = actor("latest", POLICY_NAME)
        return ExperimentConfig(
            actors=[training, training, actor(TAG, SAMPLES, is_evaluation=True)],
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
                    curriculum_config=Curriculum(
                        type_=Curriculum.Type.Linear,
                        name="corridor",
                        stages=list(self.stages),
                        conditions=[
                            Condition(
                                type_=Condition.Type.SimpleBound,
                                args={"field": "win_rate", "lower_limit": 0.8},
                            )
                        ],
                    ),
                )
            ],
        )


class FarAtOnce(Growing):
    """The same without the stages before the last one."""

    stages = ("far",)


register_environment("corridor", f"{Path(__file__).with_name('corridor.py')}:Corridor")
register_experiment("curriculum", Growing)
register_experiment("far-at-once", FarAtOnce)
