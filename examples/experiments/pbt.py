"""Population-based training: four policies learn CartPole-v1, and weak ones copy strong ones.

relaax-experiment run examples/experiments/pbt.py -f trial1

Each policy has a trainer, an actor worker that delivers steps to it, and one that is evaluated.
The policies begin with four learning rates, two of which are far too small. The manager's table
and plot, population0/exploits.csv and population0/population.png in the trial's folder, say who
has copied whom. Experiments pbt-seed1 to pbt-seed5 have other random numbers.
"""

from functools import partial

from relaax.experiments import (
    ActorWorker,
    AgentSpec,
    Environment,
    Experiment,
    ExperimentConfig,
    ExperimentScheduling,
    InferenceStream,
    Policy,
    PopulationAlgorithm,
    PopulationManager,
    Scheduling,
    TasksGroup,
    Trainer,
    TrainerWorker,
    register_experiment,
)

#: The learning rate that each policy begins with.
LEARNING_RATES = {"policy_0": 1e-3, "policy_1": 3e-4, "policy_2": 3e-6, "policy_3": 1e-6}
POPULATION_STREAM = "population"
POLICY = Policy(
    type_="section", args={"state_size": [4], "action_size": 2, "hidden_layers": [64, 64]}
)


def inline(policy_name: str) -> InferenceStream:
    """Return a stream whose actor worker has the newest version of a policy itself."""
    return InferenceStream(
        type_=InferenceStream.Type.INLINE,
        stream_name="",
        policy=POLICY,
        policy_name=policy_name,
        pull_interval_seconds=None,
    )


def actor(policy_name: str, samples: str, *, is_evaluation: bool = False) -> ActorWorker:
    """Return an actor worker whose episodes are learnt from, or evaluated."""
    spec = AgentSpec(
        index_regex=".*",
        inference_stream_idx=0,
        sample_stream_idx=0,
        send_full_trajectory=is_evaluation,
    )
    return ActorWorker(
        env=Environment(type_="CartPole-v1"),
        inference_streams=[inline(policy_name)],
        sample_streams=[samples],
        agent_specs=[spec],
        is_evaluation=is_evaluation,
    )


def trainer(policy_name: str, seed: int) -> TrainerWorker:
    """Return the trainer of a policy; its learning rate stands with the population."""
    args = {
        "episode_len": 128,
        "rollouts_per_batch": 4,
        "passes": 10,
        "minibatches": 4,
        "max_global_step": 100_000,
        "seed": seed,
    }
    return TrainerWorker(
        policy_name=policy_name,
        trainer=Trainer(type_="ppo", args=args),
        policy=POLICY,
        sample_stream=policy_name,
    )


class Population(Experiment):
    """Four policies, two actor workers and one trainer of each, and a manager."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        count = len(LEARNING_RATES)
        return ExperimentScheduling(
            actors=TasksGroup(count=2 * count, scheduling=Scheduling.actor_worker_default()),
            trainers=TasksGroup(count=count, scheduling=Scheduling.trainer_worker_default()),
            population_manager=TasksGroup(
                count=1, scheduling=Scheduling.population_manager_default()
            ),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        names = list(LEARNING_RATES)
        training = [actor(name, name) for name in names]
        evaluating = [actor(name, POPULATION_STREAM, is_evaluation=True) for name in names]
        return ExperimentConfig(
            actors=[*training, *evaluating],
            trainers=[trainer(name, 10 * self.seed + place) for place, name in enumerate(names)],
            population_manager=[
                PopulationManager(
                    population=names,
                    population_algorithm=PopulationAlgorithm(
                        type_="vanilla_pbt",
                        args={
                            "ready_interval": 20,
                            "truncation_ratio": 0.25,
                            "explore_configs": [
                                {
                                    "keys": "initial_learning_rate",
                                    "method": "perturb",
                                    "factors": [0.8, 1.2],
                                    "max_value": 3e-3,
                                }
                            ],
                            "seed": self.seed,
                        },
                    ),
                    population_sample_stream=POPULATION_STREAM,
                    initial_hyperparams={
                        name: {"initial_learning_rate": rate}
                        for name, rate in LEARNING_RATES.items()
                    },
                )
            ],
        )


register_experiment("pbt", Population)
for number in range(1, 6):
    register_experiment(f"pbt-seed{number}", partial(Population, seed=number))
