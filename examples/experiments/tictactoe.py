"""PPO on PettingZoo's tic-tac-toe: each player learns a policy of its own, against the other one.

relaax-experiment run examples/experiments/tictactoe.py
"""

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

PLAYERS = ("player_1", "player_2")
NETWORK: dict[str, Any] = {
    "encoders": {"observation": [{"conv2d": {"filters": 128, "kernel": 3}}, {"dense": 128}]}
}
POLICY = Policy(
    type_="section",
    args={
        "state_size": {"observation": [3, 3, 2]},
        "action_size": 9,
        "action_mask": "action_mask",
        "network": NETWORK,
        "filter_states": False,
    },
)
TRAINER = Trainer(
    type_="ppo",
    args={
        "episode_len": 64,
        "rollouts_per_batch": 16,
        "passes": 6,
        "minibatches": 8,
        "max_policy_lag": 1,
        "initial_learning_rate": 1e-3,
        "entropy_beta": 0.5,  # an opponent that errs: the second player learns to win, too
        "rewards_gamma": 1.0,
        "trace_decay": 0.9,
        "max_global_step": 120_000,
        "seed": 1,
    },
)


def inline(player: str) -> InferenceStream:
    """Return the stream of a player's policy, which is pulled when a game begins."""
    return InferenceStream(
        type_=InferenceStream.Type.INLINE, stream_name="", policy=POLICY, policy_name=player
    )


class TicTacToe(Experiment):
    """Two independent learners: policies, parameter servers and trainers of their own."""

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        return ExperimentScheduling(
            actors=TasksGroup(count=1, scheduling=Scheduling.actor_worker_default()),
            trainers=TasksGroup(count=len(PLAYERS), scheduling=Scheduling.trainer_worker_default()),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        actor = ActorWorker(
            env=Environment(type_="classic/tictactoe-v3"),
            ring_size=16,
            inference_streams=[inline(player) for player in PLAYERS],
            sample_streams=list(PLAYERS),
            agent_specs=[
                AgentSpec(index_regex=player, inference_stream_idx=place, sample_stream_idx=place)
                for place, player in enumerate(PLAYERS)
            ],
        )
        return ExperimentConfig(
            actors=[actor],
            trainers=[
                TrainerWorker(
                    policy_name=player, trainer=TRAINER, policy=POLICY, sample_stream=player
                )
                for player in PLAYERS
            ],
        )


register_experiment("tictactoe", TicTacToe)
