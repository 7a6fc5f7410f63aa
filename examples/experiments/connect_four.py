"""Self-play: PPO on PettingZoo's Connect Four, against past versions that are hard to beat.

relaax-experiment run examples/experiments/connect_four.py -e connect_four -f trial1

One policy learns both seats. In one actor worker it plays against itself, which begins the
training; in two others it has one of the seats, and the opponent of each game is drawn from the
tagged versions, in proportion to the weights of the population's manager. Its table,
population0/self_play.csv in the trial's folder, has the rating of each version and the win rate
against it; the rating of the newest policy is a metric, too: elo.

The experiment connect_four_independent is for comparison: a policy for each seat, as in
tictactoe.py, and as many steps together. Both have further seeds: connect_four-seed2, and so on.
"""

from functools import partial
from typing import Any

from relaax.experiments import (
    ActorWorker,
    AgentSpec,
    Environment,
    Experiment,
    ExperimentConfig,
    ExperimentScheduling,
    InferenceStream,
    ParameterDB,
    Policy,
    PopulationAlgorithm,
    PopulationManager,
    SampleStream,
    Scheduling,
    TasksGroup,
    Trainer,
    TrainerWorker,
    register_experiment,
)

PLAYERS = ("player_0", "player_1")
GAME = Environment(type_="classic/connect_four-v3")
DATABASE = ParameterDB(type_=ParameterDB.Type.METADATA)
#: The games of past versions are reported to it.
POPULATION_STREAM = "population"
#: Environment steps of the learning players.
STEPS = 800_000
NETWORK: dict[str, Any] = {
    "encoders": {"observation": [{"conv2d": {"filters": 64, "kernel": 4}}, {"dense": 128}]}
}
POLICY = Policy(
    type_="section",
    args={
        "state_size": {"observation": [6, 7, 2]},
        "action_size": 7,
        "action_mask": "action_mask",
        "network": NETWORK,
        "filter_states": False,
    },
)


def inline(policy_name: str, identifier: Any = "latest") -> InferenceStream:
    """Return a stream whose actor worker pulls a version of a policy when a game begins."""
    return InferenceStream(
        type_=InferenceStream.Type.INLINE,
        stream_name="",
        policy=POLICY,
        policy_name=policy_name,
        policy_identifier=identifier,
        parameter_db=DATABASE,
    )


def trainer(policy_name: str, max_global_step: int, seed: int) -> TrainerWorker:
    """Return the trainer of a policy."""
    args = {
        "episode_len": 64,
        "rollouts_per_batch": 16,
        "passes": 4,
        "minibatches": 4,
        "max_policy_lag": 4,
        "initial_learning_rate": 1e-3,
        "entropy_beta": 0.1,  # opponents that err now and then
        "rewards_gamma": 1.0,
        "trace_decay": 0.9,
        "max_global_step": max_global_step,
        "seed": seed,
    }
    return TrainerWorker(
        policy_name=policy_name,
        trainer=Trainer(type_="ppo", args=args),
        policy=POLICY,
        sample_stream=policy_name,
        parameter_db=DATABASE,
        push_frequency_steps=10,
    )


class SelfPlay(Experiment):
    """One policy, which plays against its past versions from both seats."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        return ExperimentScheduling(
            actors=TasksGroup(count=3, scheduling=Scheduling.actor_worker_default()),
            trainers=TasksGroup(count=1, scheduling=Scheduling.trainer_worker_default()),
            population_manager=TasksGroup(
                count=1, scheduling=Scheduling.population_manager_default()
            ),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        manager = PopulationManager(
            population=["default"],
            population_algorithm=PopulationAlgorithm(
                type_="self_play", args={"weighting": "hard", "power": 2}
            ),
            population_sample_stream=POPULATION_STREAM,
        )
        return ExperimentConfig(
            actors=[self._against_itself(), *(self._against_past(name) for name in PLAYERS)],
            trainers=[trainer("default", STEPS, self.seed)],
            population_manager=[manager],
        )

    def _against_itself(self) -> ActorWorker:
        """Return the actor worker in which both players learn."""
        spec = AgentSpec(index_regex=".*", inference_stream_idx=0, sample_stream_idx=0)
        return ActorWorker(
            env=GAME,
            inference_streams=[inline("default")],
            sample_streams=["default"],
            agent_specs=[spec],
            ring_size=8,
        )

    def _against_past(self, learning: str) -> ActorWorker:
        """Return the actor worker in which the policy learns as this player."""
        (other,) = set(PLAYERS) - {learning}
        past = [{"$match": {}}, {"$draw": "md.pfsp"}]
        return ActorWorker(
            env=GAME,
            inference_streams=[inline("default"), inline("default", past)],
            sample_streams=[
                "default",
                SampleStream(type_=SampleStream.Type.NAME, stream_name=POPULATION_STREAM),
            ],
            agent_specs=[
                AgentSpec(index_regex=learning, inference_stream_idx=0, sample_stream_idx=0),
                AgentSpec(index_regex=other, inference_stream_idx=1, sample_stream_idx=1),
            ],
        )


class IndependentLearners(Experiment):
    """A policy for each player, which learns against the other one's newest version."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        return ExperimentScheduling(
            actors=TasksGroup(count=2, scheduling=Scheduling.actor_worker_default()),
            trainers=TasksGroup(count=len(PLAYERS), scheduling=Scheduling.trainer_worker_default()),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        actor = ActorWorker(
            env=GAME,
            inference_streams=[inline(player) for player in PLAYERS],
            sample_streams=list(PLAYERS),
            agent_specs=[
                AgentSpec(index_regex=player, inference_stream_idx=place, sample_stream_idx=place)
                for place, player in enumerate(PLAYERS)
            ],
            ring_size=8,
        )
        return ExperimentConfig(
            actors=[actor, actor],
            trainers=[trainer(player, STEPS // 2, self.seed) for player in PLAYERS],
        )


register_experiment("connect_four", SelfPlay)
register_experiment("connect_four_independent", IndependentLearners)
for number in range(1, 4):
    register_experiment(f"connect_four-seed{number}", partial(SelfPlay, seed=number))
    register_experiment(
        f"connect_four_independent-seed{number}", partial(IndependentLearners, seed=number)
    )
