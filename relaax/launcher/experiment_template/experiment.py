"""The experiment: which workers there are, and the streams between them.

relaax-experiment run experiment.py
"""

from pathlib import Path

from relaax.experiments import (
    ActorWorker,
    AgentSpec,
    Environment,
    Experiment,
    ExperimentConfig,
    ExperimentScheduling,
    InferenceStream,
    Policy,
    SampleStream,
    Scheduling,
    TasksGroup,
    Trainer,
    TrainerWorker,
    register_environment,
    register_experiment,
)

ACTORS = 2
STEPS = SampleStream(type_=SampleStream.Type.NAME, stream_name="steps")

#: CHANGE: the class in environment.py, and its arguments.
register_environment("point", f"{Path(__file__).resolve().parent / 'environment.py'}:Point")
ENVIRONMENT = Environment(type_="point", args={"width": 1.0})
#: CHANGE: the sizes are those of the environment's spaces.
POLICY = Policy(
    type_="section", args={"state_size": [2], "action_size": 3, "hidden_layers": [32, 32]}
)
TRAINER = Trainer(
    type_="ppo",
    args={
        "episode_len": 64,  # steps of a rollout, the piece that is learnt from
        "rollouts_per_batch": ACTORS,
        "passes": 10,
        "minibatches": 2,
        "initial_learning_rate": 1e-3,
        "rewards_gamma": 0.95,
        "max_global_step": 15_000,  # the training is over after so many steps
        "seed": 1,
    },
)


class First(Experiment):
    """Actor workers with a policy of their own each, and a trainer that learns from their steps."""

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        return ExperimentScheduling(
            actors=TasksGroup(count=ACTORS, scheduling=Scheduling.actor_worker_default()),
            trainers=TasksGroup(count=1, scheduling=Scheduling.trainer_worker_default()),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        stream = InferenceStream(
            type_=InferenceStream.Type.INLINE,
            stream_name="",
            policy=POLICY,
            policy_name="default",
            pull_interval_seconds=None,  # newer parameters at each reset
        )
        actor = ActorWorker(
            env=ENVIRONMENT,
            inference_streams=[stream],
            sample_streams=[STEPS],
            agent_specs=[AgentSpec(index_regex=".*", inference_stream_idx=0, sample_stream_idx=0)],
        )
        trainer = TrainerWorker(
            policy_name="default", trainer=TRAINER, policy=POLICY, sample_stream=STEPS
        )
        return ExperimentConfig(actors=[actor] * ACTORS, trainers=[trainer])


register_experiment("first", First)
