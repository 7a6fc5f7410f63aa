"""MAPPO on Atari's Pong: SRL's example, with fewer workers.

relaax-experiment run examples/experiments/atari.py -e example-atari -f trial1
"""

from pathlib import Path

from relaax.experiments import (
    ActorWorker,
    AgentSpec,
    Environment,
    Experiment,
    ExperimentConfig,
    ExperimentScheduling,
    Policy,
    PolicyWorker,
    Scheduling,
    TasksGroup,
    TrainerWorker,
    register_experiment,
)

#: A quarter of a GPU for each policy worker, where there is a GPU.
GPU = 0.25 if Path("/dev/nvidia0").exists() else 0

ACTORS, POLICIES, TRAINERS = 4, 2, 1

scheduling = ExperimentScheduling(
    actors=TasksGroup(count=ACTORS, scheduling=Scheduling.actor_worker_default(cpu=1, mem=1024)),
    policies=TasksGroup(
        count=POLICIES, scheduling=Scheduling.policy_worker_default(gpu=GPU, mem=1024 * 2)
    ),
    trainers=TasksGroup(
        count=TRAINERS, scheduling=Scheduling.trainer_worker_default(cpu=2, mem=1024 * 4)
    ),
)

policy_name = "default"
policy = Policy(type_="atari_naive_rnn", args={"action_space": 18})

experiment = ExperimentConfig(
    actors=[
        ActorWorker(
            env=Environment(type_="atari", args={"game_name": "PongNoFrameskip-v4"}),
            inference_streams=[policy_name],
            sample_streams=[policy_name],
            agent_specs=[AgentSpec(index_regex=".*", inference_stream_idx=0, sample_stream_idx=0)],
        )
        for _ in range(ACTORS)
    ],
    policies=[
        PolicyWorker(policy_name=policy_name, inference_stream=policy_name, policy=policy)
        for _ in range(POLICIES)
    ],
    trainers=[
        TrainerWorker(
            policy_name=policy_name, trainer="mappo", policy=policy, sample_stream=policy_name
        )
        for _ in range(TRAINERS)
    ],
)


class AtariExperiment(Experiment):
    """Pong, whose policy is in policy workers: a remote stream."""

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        return scheduling

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        return experiment


register_experiment("example-atari", AtariExperiment)
