"""PSRO: two players of a matrix game learn best responses, and mixtures of them are an equilibrium.

relaax-experiment run examples/experiments/psro.py -e rock_paper_scissors -f trial1

Each player has a policy, which learns against the other one's past versions, drawn by the weights
of the population's manager. A third actor worker plays the versions against one another that the
manager has tagged. Its tables are in population0 of the trial's folder: payoffs.csv has the payoffs
between all versions and both mixtures, psro.csv a line for each population. The experiment
two_by_two is an asymmetric game.

python benchmarks/psro_exploitability.py TRIAL says how far the mixtures are from an equilibrium of
the whole game.
"""

from functools import partial
from pathlib import Path
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
    register_environment,
    register_experiment,
)

PLAYERS = ("row", "column")
DATABASE = ParameterDB(type_=ParameterDB.Type.METADATA)
POPULATION_STREAM = "population"
NOBODY = SampleStream(type_=SampleStream.Type.NULL)


def trainer(player: str, policy: Policy, seed: int) -> TrainerWorker:
    """Return the trainer of a player's policy."""
    args = {
        "episode_len": 4,
        "rollouts_per_batch": 16,
        "passes": 4,
        "minibatches": 1,
        "max_policy_lag": 1000,
        "initial_learning_rate": 0.01,
        "entropy_beta": 0.2,  # the policy is soon another one when the mixture is another one
        "max_global_step": 1_000_000,
        "seed": seed,
    }
    return TrainerWorker(
        policy_name=player,
        trainer=Trainer(type_="ppo", args=args),
        policy=policy,
        sample_stream=player,
        parameter_db=DATABASE,
    )


class MatrixGamePsro(Experiment):
    """A policy, a trainer and an actor worker for each player, an evaluating one, and a manager."""

    def __init__(self, game: str, moves: int, meta_solver: str = "nash", seed: int = 1) -> None:
        self.env = Environment(type_="matrix_game", args={"game": game})
        self.policy = Policy(
            type_="section", args={"state_size": [1], "action_size": moves, "hidden_layers": [16]}
        )
        self.meta_solver = meta_solver
        self.seed = seed

    def scheduling_setup(self) -> ExperimentScheduling:
        """Return how many workers there are."""
        return ExperimentScheduling(
            actors=TasksGroup(count=3, scheduling=Scheduling.actor_worker_default()),
            trainers=TasksGroup(count=2, scheduling=Scheduling.trainer_worker_default()),
            population_manager=TasksGroup(
                count=1, scheduling=Scheduling.population_manager_default()
            ),
        )

    def initial_setup(self) -> ExperimentConfig:
        """Return the configuration of each worker."""
        manager = PopulationManager(
            population=list(PLAYERS),
            population_algorithm=PopulationAlgorithm(
                type_="psro", args={"oracle_updates": 30, "meta_solver": self.meta_solver}
            ),
            population_sample_stream=POPULATION_STREAM,
        )
        return ExperimentConfig(
            actors=[*map(self._oracle, PLAYERS), self._evaluating()],
            trainers=[
                trainer(player, self.policy, 10 * self.seed + place)
                for place, player in enumerate(PLAYERS)
            ],
            population_manager=[manager],
            timeout_seconds=240,
        )

    def _inline(self, player: str, identifier: Any = "latest") -> InferenceStream:
        return InferenceStream(
            type_=InferenceStream.Type.INLINE,
            stream_name="",
            policy=self.policy,
            policy_name=player,
            policy_identifier=identifier,
            parameter_db=DATABASE,
        )

    def _oracle(self, player: str) -> ActorWorker:
        """Return the actor worker in which a player learns against a mixture."""
        (other,) = set(PLAYERS) - {player}
        mixture = [{"$match": {}}, {"$draw": "md.psro"}]
        return ActorWorker(
            env=self.env,
            inference_streams=[self._inline(player), self._inline(other, mixture)],
            sample_streams=[player, NOBODY],
            agent_specs=[
                AgentSpec(index_regex=player, inference_stream_idx=0, sample_stream_idx=0),
                AgentSpec(
                    index_regex=other,
                    inference_stream_idx=1,
                    sample_stream_idx=1,
                    deterministic_action=True,
                ),
            ],
            ring_size=16,
        )

    def _evaluating(self) -> ActorWorker:
        """Return the actor worker that plays the versions which the manager has tagged."""
        return ActorWorker(
            env=self.env,
            inference_streams=[self._inline(player, "psro") for player in PLAYERS],
            sample_streams=[POPULATION_STREAM],
            agent_specs=[
                AgentSpec(
                    index_regex=player,
                    inference_stream_idx=place,
                    sample_stream_idx=0,
                    send_full_trajectory=True,
                    deterministic_action=True,
                )
                for place, player in enumerate(PLAYERS)
            ],
            is_evaluation=True,
        )


GAMES = Path(__file__).with_name("matrix_games.py")
register_environment("matrix_game", f"{GAMES}:MatrixGame")
register_experiment("rock_paper_scissors", partial(MatrixGamePsro, "rock_paper_scissors", 3))
register_experiment("two_by_two", partial(MatrixGamePsro, "two_by_two", 2))
