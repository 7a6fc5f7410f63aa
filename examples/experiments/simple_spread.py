"""Three agents cover three landmarks: by MAPPO, and by independent learners.

relaax-experiment run examples/experiments/simple_spread.py -e mappo -f seed1
relaax-experiment run examples/experiments/simple_spread.py -e independent -f seed1
"""

from typing import Any, ClassVar

from relaax.experiments import (
    ActorWorker,
    AgentSpec,
    Environment,
    Experiment,
    ExperimentConfig,
    ExperimentScheduling,
    InferenceStream,
    Policy,
    Scheduling,
    TasksGroup,
    Trainer,
    TrainerWorker,
    register_experiment,
)

AGENTS = ("agent_0", "agent_1", "agent_2")
GAMES = 16
LAYERS = [{"dense": 64}, {"dense": 64}]
TRAINER: dict[str, Any] = {
    "episode_len": 25,  # a game
    "passes": 10,
    "minibatches": 2,
    "max_policy_lag": 1,
    "initial_learning_rate": 7e-4,
    "rewards_gamma": 0.95,
    "entropy_beta": 0.01,
    "value_loss_weight": 1.0,
    "normalize_values": True,
    "huber_delta": 10.0,
    "Adam": {"epsilon": 1e-5, "gradient_norm_clipping": 10.0},
    "seed": 1,
}


def policy(**keys: Any) -> Policy:
    """Return the policy of one agent, whose network shares no layer with the critic's."""
    network = {"layers": [], "heads": {"policy": LAYERS, "value": LAYERS}}
    section = {"state_size": [18], "action_size": 5, "network": network, **keys}
    return Policy(type_="section", args=section)


class Independent(Experiment):
    """Each agent has a policy, a critic and a trainer of its own."""

    trainer = "ppo"
    #: The names of the policies, and which agents each of them has.
    policies: ClassVar[dict[str, str]] = {agent: agent for agent in AGENTS}
    policy = policy()
    steps = 300_000

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        trainers = TasksGroup(
            count=len(self.policies), scheduling=Scheduling.trainer_worker_default()
        )
        actors = TasksGroup(count=1, scheduling=Scheduling.actor_worker_default())
        return ExperimentScheduling(actors=actors, trainers=trainers)

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        names = list(self.policies)
        agents_of_each = len(AGENTS) // len(names)
        trainer = Trainer(
            type_=self.trainer,
            args={
                **TRAINER,
                "rollouts_per_batch": GAMES * agents_of_each,
                "max_global_step": self.steps // len(names),
            },
        )
        return ExperimentConfig(
            actors=[
                ActorWorker(
                    env=Environment(type_="mpe2.simple_spread_v3"),
                    ring_size=GAMES,
                    inference_streams=[self._inline(name) for name in names],
                    sample_streams=names,
                    agent_specs=[
                        AgentSpec(
                            index_regex=self.policies[name],
                            inference_stream_idx=place,
                            sample_stream_idx=place,
                        )
                        for place, name in enumerate(names)
                    ],
                )
            ],
            trainers=[
                TrainerWorker(
                    policy_name=name, trainer=trainer, policy=self.policy, sample_stream=name
                )
                for name in names
            ],
        )

    def _inline(self, name: str) -> InferenceStream:
        return InferenceStream(
            type_=InferenceStream.Type.INLINE, stream_name="", policy=self.policy, policy_name=name
        )


class Mappo(Independent):
    """All agents have one policy, and a critic that sees all of them."""

    trainer = "mappo"
    policies: ClassVar[dict[str, str]] = {"team": ".*"}
    policy = policy(team_size=len(AGENTS))


register_experiment("independent", Independent)
register_experiment("mappo", Mappo)
