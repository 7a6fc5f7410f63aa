"""The same environment, learnt by two policies at a time: the weak one copies the strong one.

relaax-experiment run population.py

Who has copied whom is in population0/exploits.csv and population0/population.png of the trial's
folder.
"""

from experiment import ENVIRONMENT, POLICY, TRAINER

from relaax.experiments import (
    ActorWorker,
    AgentSpec,
    Experiment,
    ExperimentConfig,
    ExperimentScheduling,
    InferenceStream,
    PopulationAlgorithm,
    PopulationManager,
    SampleStream,
    Scheduling,
    TasksGroup,
    Trainer,
    TrainerWorker,
    register_experiment,
)

#: CHANGE: the hyperparameters that each policy begins with.
POLICIES = {
    "policy_0": {"initial_learning_rate": 1e-3},
    "policy_1": {"initial_learning_rate": 1e-5},
}


def named(stream_name: str) -> SampleStream:
    """Return the sample stream with a name."""
    return SampleStream(type_=SampleStream.Type.NAME, stream_name=stream_name)


#: The stream of evaluated episodes, whose returns the manager compares.
EVALUATED = named("population")


def actor(policy_name: str, samples: SampleStream, *, is_evaluation: bool = False) -> ActorWorker:
    """Return an actor worker whose episodes are learnt from, or evaluated."""
    stream = InferenceStream(
        type_=InferenceStream.Type.INLINE,
        stream_name="",
        policy=POLICY,
        policy_name=policy_name,
        pull_interval_seconds=None,
    )
    spec = AgentSpec(
        index_regex=".*",
        inference_stream_idx=0,
        sample_stream_idx=0,
        send_full_trajectory=is_evaluation,
    )
    return ActorWorker(
        env=ENVIRONMENT,
        inference_streams=[stream],
        sample_streams=[samples],
        agent_specs=[spec],
        is_evaluation=is_evaluation,
    )


def trainer(policy_name: str) -> TrainerWorker:
    """Return the trainer of a policy, with a sample stream of the policy's name."""
    args = {**TRAINER.args, "rollouts_per_batch": 1}  # of one actor worker
    return TrainerWorker(
        policy_name=policy_name,
        trainer=Trainer(type_=TRAINER.type_, args=args),
        policy=POLICY,
        sample_stream=named(policy_name),
    )


class Population(Experiment):
    """For each policy a trainer and two actor workers, and a manager that compares the policies."""

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        count = len(POLICIES)
        return ExperimentScheduling(
            actors=TasksGroup(count=2 * count, scheduling=Scheduling.actor_worker_default()),
            trainers=TasksGroup(count=count, scheduling=Scheduling.trainer_worker_default()),
            population_manager=TasksGroup(
                count=1, scheduling=Scheduling.population_manager_default()
            ),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        manager = PopulationManager(
            population=list(POLICIES),
            population_algorithm=PopulationAlgorithm(
                type_="vanilla_pbt",
                args={
                    "ready_interval": 40,  # CHANGE: so many updates show which policy is better
                    "truncation_ratio": 0.5,
                    "explore_configs": [
                        {
                            "keys": "initial_learning_rate",
                            "method": "perturb",
                            "factors": [0.8, 1.2],
                        }
                    ],
                },
            ),
            population_sample_stream=EVALUATED,
            initial_hyperparams=POLICIES,
        )
        return ExperimentConfig(
            actors=[
                *(actor(name, named(name)) for name in POLICIES),
                *(actor(name, EVALUATED, is_evaluation=True) for name in POLICIES),
            ],
            trainers=[trainer(name) for name in POLICIES],
            population_manager=[manager],
        )


register_experiment("population", Population)
