"""Population-based training on Atari's Boxing: SRL's example, at a size for two cores.

relaax-experiment run examples/experiments/atari_pbt.py -e atari-pbt-mini -f trial1

Each of two policies has two actor workers and one policy worker that train, and one of each that
evaluate. An evaluated episode goes to the policy's evaluation manager and to the population's.
"""

from typing import Any

from relaax.experiments import (
    ActorWorker,
    AgentSpec,
    Environment,
    EvalManager,
    Experiment,
    ExperimentConfig,
    ExperimentScheduling,
    InferenceStream,
    Policy,
    PolicyWorker,
    PopulationAlgorithm,
    PopulationManager,
    SampleStream,
    Scheduling,
    TasksGroup,
    Trainer,
    TrainerWorker,
    register_experiment,
)

BOXING = Environment(type_="atari", args={"game_name": "BoxingNoFrameskip-v4"})
#: An episode ends after so many steps of the agent.
MOST_STEPS = 500


class AtariVanillaPBTMiniExperiment(Experiment):
    """Two policies, of which the weaker one takes what the stronger one has learnt."""

    def __init__(self) -> None:
        self.num_actors = 2
        self.num_policies = 1
        self.num_eval_actors = 1
        self.num_eval_policies = 1

        self.population = ["policy_0", "policy_1"]
        self.initial_hyperparams = {
            "policy_0": self.hyperparams(0.1, 9.0, 0.01, 1e-3, 9.0),
            "policy_1": self.hyperparams(0.2, 10.0, 0.02, 1e-4, 10.0),
        }
        self.population_algorithm = PopulationAlgorithm(
            type_="vanilla_pbt",
            args={
                "ready_interval": 5,
                "episodes": 2,
                "truncation_ratio": 0.5,
                "explore_configs": [
                    {
                        "keys": "entropy_beta",
                        "method": "perturb",
                        "factors": [0.8, 1.2],
                        "min_value": 0,
                        "max_value": 1,
                    },
                    {"keys": "huber_delta", "method": "perturb", "factors": [0.9, 1.1]},
                    {
                        "keys": "policy_clip",
                        "method": "resample",
                        "distribution": "categorical",
                        "values": [0.1, 0.2, 0.3],
                    },
                    {
                        "keys": ["Adam", "gradient_norm_clipping"],
                        "method": "resample",
                        "distribution": "uniform",
                        "value_range": [8, 12],
                    },
                    {
                        "keys": "initial_learning_rate",
                        "method": "resample",
                        "distribution": "log_uniform",
                        "value_range": [1e-3, 1e-5],
                    },
                ],
            },
        )
        self.policy = Policy(type_="atari_naive_rnn", args={"action_space": 18})
        self.population_sample_stream = SampleStream(
            type_=SampleStream.Type.NAME, stream_name="population_stream"
        )
        self.null_sample_stream = SampleStream(type_=SampleStream.Type.NULL, stream_name="")

    @staticmethod
    def hyperparams(
        eps_clip: float, delta: float, entropy: float, lr: float, max_grad_norm: float
    ) -> dict[str, Any]:
        """Return keys of MAPPO's section that the population begins with."""
        return {
            "policy_clip": eps_clip,
            "huber_delta": delta,
            "entropy_beta": entropy,
            "initial_learning_rate": lr,
            "Adam": {"epsilon": 1e-5, "gradient_norm_clipping": max_grad_norm},
        }

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        count = len(self.population)
        actors, policies = (
            self.num_actors + self.num_eval_actors,
            self.num_policies + self.num_eval_policies,
        )
        return ExperimentScheduling(
            actors=TasksGroup(count=count * actors, scheduling=Scheduling.actor_worker_default()),
            policies=TasksGroup(
                count=count * policies, scheduling=Scheduling.policy_worker_default()
            ),
            trainers=TasksGroup(count=count, scheduling=Scheduling.trainer_worker_default()),
            eval_managers=TasksGroup(count=count, scheduling=Scheduling.eval_manager_default()),
            population_manager=TasksGroup(
                count=1, scheduling=Scheduling.population_manager_default()
            ),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        actors: list[ActorWorker] = []
        policies: list[PolicyWorker] = []
        trainers: list[TrainerWorker] = []
        eval_managers: list[EvalManager] = []
        for name in self.population:
            actors += [self.actor(name)] * self.num_actors
            actors += [self.evaluating_actor(name)] * self.num_eval_actors
            policies += [
                PolicyWorker(policy_name=name, inference_stream=name, policy=self.policy)
            ] * self.num_policies
            policies += [
                PolicyWorker(
                    policy_name=name,
                    inference_stream=f"eval_{name}",
                    policy=self.policy,
                    policy_identifier="evaluation",
                )
            ] * self.num_eval_policies
            trainers.append(
                TrainerWorker(
                    policy_name=name,
                    policy=self.policy,
                    trainer=Trainer(
                        type_="mappo",
                        args={
                            "rewards_gamma": 0.98,
                            "trace_decay": 0.97,
                            "episode_len": 64,
                            "rollouts_per_batch": 4,
                            "passes": 2,
                            "minibatches": 2,
                        },
                    ),
                    sample_stream=name,
                )
            )
            eval_managers.append(
                EvalManager(
                    policy_name=name,
                    eval_sample_stream=f"eval_{name}",
                    tag="evaluation",
                    eval_games_per_version=2,
                )
            )
        return ExperimentConfig(
            actors=actors,
            policies=policies,
            trainers=trainers,
            eval_managers=eval_managers,
            population_manager=[
                PopulationManager(
                    population=self.population,
                    population_algorithm=self.population_algorithm,
                    population_sample_stream=self.population_sample_stream,
                    initial_hyperparams=self.initial_hyperparams,
                )
            ],
        )

    def actor(self, name: str) -> ActorWorker:
        """Return an actor worker whose steps train a policy."""
        return ActorWorker(
            env=BOXING,
            inference_streams=[InferenceStream(type_=InferenceStream.Type.NAME, stream_name=name)],
            sample_streams=[SampleStream(type_=SampleStream.Type.NAME, stream_name=name)],
            agent_specs=[AgentSpec(index_regex=".*", inference_stream_idx=0, sample_stream_idx=0)],
            max_num_steps=MOST_STEPS,
            ring_size=2,
        )

    def evaluating_actor(self, name: str) -> ActorWorker:
        """Return an actor worker whose episodes of agent 0 are evaluated."""
        return ActorWorker(
            env=BOXING,
            inference_streams=[f"eval_{name}"],
            sample_streams=[f"eval_{name}", self.population_sample_stream, self.null_sample_stream],
            agent_specs=[
                AgentSpec(
                    index_regex="0",
                    inference_stream_idx=0,
                    sample_stream_idx=[0, 1],
                    send_full_trajectory=True,
                    deterministic_action=True,
                ),
                AgentSpec(
                    index_regex=".*",
                    inference_stream_idx=0,
                    sample_stream_idx=2,
                    send_full_trajectory=True,
                    deterministic_action=True,
                ),
            ],
            max_num_steps=MOST_STEPS,
            is_evaluation=True,
        )


register_experiment("atari-pbt-mini", AtariVanillaPBTMiniExperiment)
