"""The servers' configuration: one YAML file for all, and flags that override it.

``option_kinds``        the kinds of options, with their checks
``eval_rules``          how long a version of a policy is evaluated
``population_rules``    how a population's policies copy one another
``curriculum``          stages of environments, and their conditions
``wandb_runs``          runs of workers at Weights & Biases
``option_base``         declares the options that several commands have
``options``             declares all others, and puts the options of each command together
``commands``            says which commands there are, with their options
``command_line``        builds the command-line parsers from the options
``yaml_reader``         reads YAML files, within limits
``mistakes``            explains values that are refused
``merging``             combines flags, YAML file and defaults, and knows each value's source
``load``                loads the configuration of a command
``exit_status``         turns known errors into one line and an exit status
``named_files``         finds the algorithm, and a file of its network, that the YAML file names
``algorithm_loader``    imports the algorithm from its folder
``announced_spaces``    compares the spaces of environments with the algorithm's
``first_look``          doubtful values in the first steps of environments
``space_check``         checks the spaces that the algorithm gives
``addresses``           puts other addresses in the place of those in options
``actor_agents``        reads the groups of agents of an actor worker
``access``              begins a server, and guards a process as its options say
"""

from relaax.configuration.commands import PARAMETER_SERVER
from relaax.configuration.exit_status import leave_at_once, leave_undisturbed, run_command
from relaax.configuration.load import (
    ActorConfiguration,
    AlgorithmSection,
    Configuration,
    ExportConfiguration,
    InferenceServerConfiguration,
    LearnerConfiguration,
    ParameterServerConfiguration,
    ReplayServerConfiguration,
    RlxServerConfiguration,
    load_actor,
    load_export,
    load_inference_server,
    load_learner,
    load_parameter_server,
    load_replay_server,
    load_rlx_server,
)
from relaax.configuration.option_kinds import AwsAccess, S3Location
from relaax.configuration.options import (
    ActorOptions,
    ExportOptions,
    InferenceServerOptions,
    LearnerOptions,
    ParameterServerOptions,
    ReplayServerOptions,
    RlxServerOptions,
)

__all__ = [
    "PARAMETER_SERVER", "ActorConfiguration", "ActorOptions", "AlgorithmSection", "AwsAccess",
    "Configuration", "ExportConfiguration", "ExportOptions", "InferenceServerConfiguration",
    "InferenceServerOptions", "LearnerConfiguration", "LearnerOptions",
    "ParameterServerConfiguration", "ParameterServerOptions", "ReplayServerConfiguration",
    "ReplayServerOptions", "RlxServerConfiguration", "RlxServerOptions", "S3Location",
    "leave_at_once", "leave_undisturbed", "load_actor", "load_export", "load_inference_server",
    "load_learner", "load_parameter_server", "load_replay_server", "load_rlx_server", "run_command"
]  # fmt: skip
