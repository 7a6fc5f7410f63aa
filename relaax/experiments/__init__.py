"""Experiments: groups of workers that are described once, as Python or YAML, and run together.

``scheduling``   how many workers of each kind there are, with their resources
``workers``      the configuration of each worker, with streams between them
``experiment``   the class that users derive from, and what they register
``written``      experiments as YAML, and back
``files``        reads experiments of files
``checks``       what does not fit together in an experiment
``stream_checks`` the same between streams, policies and trainers
``version_checks`` the same about versions of policies
``eval_checks`` the same about evaluations
``population_checks`` the same about populations
``league_checks`` the same about the learners and opponents of self-play and leagues
``draw_checks``  the same about numbers by which versions of a population's members are drawn
``population``   files and options of a population's processes
``curriculum_checks`` the same about curricula
``routes``       where a trial's processes listen, and how its actors reach them
``diagram``      an experiment as a drawing
``policies``     the section of an algorithm that a trainer and its policy describe
``wandb_files``  the runs of workers at Weights & Biases
``gpus``         which GPU each process of a trial sees
``trial``        the files and command lines of a trial on this machine
"""

from relaax.configuration.curriculum import Condition, Curriculum
from relaax.configuration.population_rules import PopulationAlgorithm
from relaax.experiments.experiment import (
    Experiment,
    register_environment,
    register_experiment,
    register_policy,
)
from relaax.experiments.scheduling import ExperimentScheduling, Scheduling, TasksGroup
from relaax.experiments.workers import (
    ActorWorker,
    AgentSpec,
    BufferWorker,
    Environment,
    EvalManager,
    ExperimentConfig,
    InferenceStream,
    ParameterDB,
    Policy,
    PolicyWorker,
    PopulationManager,
    SampleStream,
    Trainer,
    TrainerWorker,
    WorkerInformation,
)

__all__ = [
    "ActorWorker", "AgentSpec", "BufferWorker", "Condition", "Curriculum", "Environment",
    "EvalManager", "Experiment", "ExperimentConfig", "ExperimentScheduling", "InferenceStream",
    "ParameterDB", "Policy", "PolicyWorker", "PopulationAlgorithm", "PopulationManager",
    "SampleStream", "Scheduling", "TasksGroup", "Trainer", "TrainerWorker", "WorkerInformation",
    "register_environment", "register_experiment", "register_policy"
]  # fmt: skip
