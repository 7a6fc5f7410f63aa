"""PPO on CartPole-v1, with acting at most 0 or 2 versions ahead of learning, or without a bound.

relaax-experiment run examples/experiments/staleness.py -e eta0-seed1
relaax-experiment run examples/experiments/staleness.py -e eta2-seed1
relaax-experiment run examples/experiments/staleness.py -e unbounded-seed1
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

ACTORS = 4
NAME = "cartpole"
POLICY = Policy(
    type_="section", args={"state_size": [4], "action_size": 2, "hidden_layers": [64, 64]}
)
TRAINER: dict[str, Any] = {
    "episode_len": 64,
    "rollouts_per_batch": 8,
    "passes": 20,
    "minibatches": 2,
    "initial_learning_rate": 1e-3,
    "rewards_gamma": 0.98,
    "trace_decay": 0.8,
    "max_global_step": 100_000,
    "decoupled": 2.0,  # without effect on steps of the newest version
}
#: Without a bound acting never waits: there is room for all steps of the training.
BOUNDS: dict[str, dict[str, Any]] = {
    "eta0": {"max_staleness": 0},
    "eta2": {"max_staleness": 2},
    "unbounded": {"max_policy_lag": 1000},
}
SEEDS = (1, 2, 3)


class Staleness(Experiment):
    """Four actor workers, a trainer, and keys that say how old a rollout may be."""

    keys: ClassVar[dict[str, Any]]

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
            policy_name=NAME,
            pull_interval_seconds=0.02,
        )
        actor = ActorWorker(
            env=Environment(type_="CartPole-v1"),
            inference_streams=[stream],
            sample_streams=[NAME],
            agent_specs=[AgentSpec(index_regex=".*", inference_stream_idx=0, sample_stream_idx=0)],
        )
        trainer = TrainerWorker(
            policy_name=NAME,
            trainer=Trainer(type_="ppo", args={**TRAINER, **self.keys}),
            policy=POLICY,
            sample_stream=NAME,
        )
        return ExperimentConfig(actors=[actor] * ACTORS, trainers=[trainer])


for bound, keys in BOUNDS.items():
    for seed in SEEDS:
        kind = type(bound, (Staleness,), {"keys": {**keys, "seed": seed}})
        register_experiment(f"{bound}-seed{seed}", kind)
