"""A league: PPO on PettingZoo's Connect Four, with an exploiter that seeks the main agent's flaws.

relaax-experiment run examples/experiments/league.py -e league -f trial1

The main agent learns both seats: against itself, against its own past versions, and against those
of the exploiter, the ones that are hard to beat more often. The exploiter learns against the newest
main agent alone. When it wins most of these games, or after a while, it begins anew with the main
agent's parameters, and its version of before stays an opponent. population0/league.csv in the
trial's folder has ratings and win rates; the ratings of both are metrics, too: elo.
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
MAIN, EXPLOITER = "main", "exploiter"
GAME = Environment(type_="classic/connect_four-v3")
DATABASE = ParameterDB(type_=ParameterDB.Type.METADATA)
#: By learner: the stream of its games, which opponents report to.
GAMES = {MAIN: "against_main", EXPLOITER: "against_exploiter"}
#: Environment steps of the main agent, with which the training ends.
STEPS = 240_000
NETWORK: dict[str, Any] = {
    "encoders": {"observation": [{"conv2d": {"filters": 32, "kernel": 4}}, {"dense": 128}]}
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
#: Past versions that are hard to beat for the main agent.
HARD = [{"$match": {}}, {"$draw": "md.pfsp_main"}]


class League(Experiment):
    """A main agent and an exploiter."""

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        return ExperimentScheduling(
            actors=TasksGroup(count=7, scheduling=Scheduling.actor_worker_default()),
            trainers=TasksGroup(count=2, scheduling=Scheduling.trainer_worker_default()),
            population_manager=TasksGroup(
                count=1, scheduling=Scheduling.population_manager_default()
            ),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        manager = PopulationManager(
            population=[MAIN, EXPLOITER],
            population_algorithm=PopulationAlgorithm(
                type_="league",
                args={
                    "learners": {
                        MAIN: {"stream": GAMES[MAIN], "weighting": "hard", "power": 2},
                        EXPLOITER: {
                            "stream": GAMES[EXPLOITER],
                            "exploits": MAIN,
                            "reset_win_rate": 0.7,
                            "reset_updates": 30,
                        },
                    }
                },
            ),
        )
        return ExperimentConfig(
            actors=[
                self._against_itself(),
                *(self._game(MAIN, seat, MAIN, HARD) for seat in PLAYERS),
                *(self._game(MAIN, seat, EXPLOITER, HARD) for seat in PLAYERS),
                *(self._game(EXPLOITER, seat, MAIN, "latest") for seat in PLAYERS),
            ],
            trainers=[self._trainer(MAIN, STEPS), self._trainer(EXPLOITER, 10 * STEPS)],
            population_manager=[manager],
        )

    def _against_itself(self) -> ActorWorker:
        """Return the actor worker in which the main agent learns as both players."""
        spec = AgentSpec(index_regex=".*", inference_stream_idx=0, sample_stream_idx=0)
        return ActorWorker(
            env=GAME,
            inference_streams=[self._inline(MAIN)],
            sample_streams=[MAIN],
            agent_specs=[spec],
        )

    def _game(self, learner: str, seat: str, opponent: str, identifier: Any) -> ActorWorker:
        """Return the actor worker in which a policy learns as one player."""
        (other,) = set(PLAYERS) - {seat}
        games = SampleStream(type_=SampleStream.Type.NAME, stream_name=GAMES[learner])
        return ActorWorker(
            env=GAME,
            inference_streams=[self._inline(learner), self._inline(opponent, identifier)],
            sample_streams=[learner, games],
            agent_specs=[
                AgentSpec(index_regex=seat, inference_stream_idx=0, sample_stream_idx=0),
                AgentSpec(index_regex=other, inference_stream_idx=1, sample_stream_idx=1),
            ],
        )

    def _inline(self, policy_name: str, identifier: Any = "latest") -> InferenceStream:
        """Return a stream whose actor worker pulls a version of a policy when a game begins."""
        return InferenceStream(
            type_=InferenceStream.Type.INLINE,
            stream_name="",
            policy=POLICY,
            policy_name=policy_name,
            policy_identifier=identifier,
            parameter_db=DATABASE,
        )

    def _trainer(self, policy_name: str, max_global_step: int) -> TrainerWorker:
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
            "seed": 1,
        }
        return TrainerWorker(
            policy_name=policy_name,
            trainer=Trainer(type_="ppo", args=args),
            policy=POLICY,
            sample_stream=policy_name,
            parameter_db=DATABASE,
            push_frequency_steps=10,
        )


register_experiment("league", League)
