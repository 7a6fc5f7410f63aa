"""PPO on CartPole-v1, as two experiments: who chooses actions is what differs.

relaax-experiment run examples/experiments/cartpole.py -e cartpole-remote -f trial1
"""

from relaax.experiments import (
    ActorWorker,
    AgentSpec,
    Environment,
    Experiment,
    ExperimentConfig,
    ExperimentScheduling,
    InferenceStream,
    Policy,
    PolicyWorker,
    Scheduling,
    TasksGroup,
    Trainer,
    TrainerWorker,
    register_experiment,
)

ACTORS = 4
POLICY_NAME = "default"
POLICY = Policy(
    type_="section", args={"state_size": [4], "action_size": 2, "hidden_layers": [64, 64]}
)
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


def actor(stream: InferenceStream | str) -> ActorWorker:
    """Return an actor worker that chooses by a stream."""
    return ActorWorker(
        env=Environment(type_="CartPole-v1"),
        inference_streams=[stream],
        sample_streams=[POLICY_NAME],
        agent_specs=[AgentSpec(index_regex=".*", inference_stream_idx=0, sample_stream_idx=0)],
    )


class CartPole(Experiment):
    """The policy is in the actor workers, which pull it when an episode begins."""

    policy_workers = 0
    stream: InferenceStream | str = InferenceStream(
        type_=InferenceStream.Type.INLINE,
        stream_name="",
        policy=POLICY,
        policy_name=POLICY_NAME,
        pull_interval_seconds=None,
    )

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        return ExperimentScheduling(
            actors=TasksGroup(count=ACTORS, scheduling=Scheduling.actor_worker_default()),
            policies=TasksGroup(
                count=self.policy_workers, scheduling=Scheduling.policy_worker_default()
            ),
            trainers=TasksGroup(count=1, scheduling=Scheduling.trainer_worker_default()),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        return ExperimentConfig(
            actors=[actor(self.stream) for _ in range(ACTORS)],
            policies=[
                PolicyWorker(policy_name=POLICY_NAME, inference_stream=POLICY_NAME, policy=POLICY)
                for _ in range(self.policy_workers)
            ],
            trainers=[
                TrainerWorker(
                    policy_name=POLICY_NAME,
                    trainer=TRAINER,
                    policy=POLICY,
                    sample_stream=POLICY_NAME,
                )
            ],
        )


class CartPoleRemote(CartPole):
    """The policy is in policy workers, which choose for all actor workers."""

    policy_workers = 2
    stream = POLICY_NAME


register_experiment("cartpole", CartPole)
register_experiment("cartpole-remote", CartPoleRemote)
