"""Agents with a common task: by MAPPO, by PPO with one policy, and by learners that share nothing.

In simple_spread three agents cover three landmarks, and see nearly all that there is. In
simple_reference each of two agents is to go where only the other one knows.

relaax-experiment run examples/experiments/simple_spread.py -e mappo -f seed1
relaax-experiment run examples/experiments/simple_spread.py -e independent -f seed1
relaax-experiment run examples/experiments/simple_spread.py -e reference-mappo -f seed1
"""

from dataclasses import dataclass
from typing import Any

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

GAMES = 16
LAYERS = [{"dense": 64}, {"dense": 64}]
TRAINER: dict[str, Any] = {
    "episode_len": 25,  # a game
    "passes": 10,
    "max_policy_lag": 1,
    "initial_learning_rate": 7e-4,
    "rewards_gamma": 0.95,
    "value_loss_weight": 1.0,
    "normalize_values": True,
    "huber_delta": 10.0,
    "Adam": {"epsilon": 1e-5, "gradient_norm_clipping": 10.0},
    "seed": 1,
}


@dataclass(frozen=True)
class Task:
    """An environment of mpe2, and what its policies need."""

    environment: str
    agents: int
    state_size: int
    action_size: int
    #: Of all agents together.
    steps: int
    minibatches: int
    entropy_beta: float


SPREAD = Task("mpe2.simple_spread_v3", 3, 18, 5, 1_000_000, 8, 0.001)
REFERENCE = Task("mpe2.simple_reference_v3", 2, 21, 50, 300_000, 4, 0.01)


class Independent(Experiment):
    """Each agent has a policy, a critic and a trainer of its own."""

    task = SPREAD
    trainer = "ppo"
    is_shared = False

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
        trainer = Trainer(
            type_=self.trainer,
            args={
                **TRAINER,
                "minibatches": self.task.minibatches,
                "entropy_beta": self.task.entropy_beta,
                "rollouts_per_batch": GAMES * self.task.agents // len(names),
                "max_global_step": self.task.steps // len(names),
            },
        )
        return ExperimentConfig(
            actors=[
                ActorWorker(
                    env=Environment(type_=self.task.environment),
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

    @property
    def policies(self) -> dict[str, str]:
        """The names of the policies, and which agents each of them has."""
        if self.is_shared:
            return {"team": ".*"}
        return {f"agent_{number}": str(number) for number in range(self.task.agents)}

    @property
    def policy(self) -> Policy:
        """The policy, whose network shares no layer with the critic's."""
        section = {
            "state_size": [self.task.state_size],
            "action_size": self.task.action_size,
            "network": {"layers": [], "heads": {"policy": LAYERS, "value": LAYERS}},
        }
        seen = {"team_size": self.task.agents} if self.trainer == "mappo" else {}
        return Policy(type_="section", args={**section, **seen})

    def _inline(self, name: str) -> InferenceStream:
        return InferenceStream(
            type_=InferenceStream.Type.INLINE, stream_name="", policy=self.policy, policy_name=name
        )


class Shared(Independent):
    """All agents have one policy, and a critic that sees what the agent sees."""

    is_shared = True


class Mappo(Shared):
    """All agents have one policy, and a critic that sees all of them."""

    trainer = "mappo"


class ReferenceIndependent(Independent):
    """The same for simple_reference."""

    task = REFERENCE


class ReferenceShared(Shared):
    """The same for simple_reference."""

    task = REFERENCE


class ReferenceMappo(Mappo):
    """The same for simple_reference."""

    task = REFERENCE


for name, experiment in {
    "mappo": Mappo,
    "shared": Shared,
    "independent": Independent,
    "reference-mappo": ReferenceMappo,
    "reference-shared": ReferenceShared,
    "reference-independent": ReferenceIndependent,
}.items():
    register_experiment(name, experiment)
