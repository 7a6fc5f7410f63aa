"""The servers' configuration: one YAML file for all, and flags that override it.

``option_kinds``        says what values of options must be
``option_base``         declares the options that several commands have
``rlx_server_options``  declares the options of the RLX server
``options``             declares those of all other commands
``commands``            says which commands there are, with their options
``command_line``        builds the command-line parsers from the options
``yaml_reader``         reads the YAML file
``access_file``         reads the section ``access`` from a file of its own
``mistakes``            explains values that are refused
``load``                combines flags, YAML file and defaults
``exit_status``         turns known errors into one line and an exit status
"""

from relaax.server.common.configuration.commands import PARAMETER_SERVER
from relaax.server.common.configuration.exit_status import (
    leave_at_once,
    leave_undisturbed,
    run_command,
)
from relaax.server.common.configuration.load import (
    ActorConfiguration,
    AlgorithmSection,
    Configuration,
    ExportConfiguration,
    LearnerConfiguration,
    ParameterServerConfiguration,
    ReplayServerConfiguration,
    RlxServerConfiguration,
    load_actor,
    load_export,
    load_learner,
    load_parameter_server,
    load_replay_server,
    load_rlx_server,
    require_interval_of_eviction,
    require_none_of,
)
from relaax.server.common.configuration.option_kinds import AwsAccess, S3Location
from relaax.server.common.configuration.options import (
    ActorOptions,
    ExportOptions,
    LearnerOptions,
    ParameterServerOptions,
    ReplayServerOptions,
)
from relaax.server.common.configuration.rlx_server_options import RlxServerOptions

__all__ = [
    "PARAMETER_SERVER", "ActorConfiguration", "ActorOptions", "AlgorithmSection", "AwsAccess",
    "Configuration", "ExportConfiguration", "ExportOptions", "LearnerConfiguration",
    "LearnerOptions", "ParameterServerConfiguration", "ParameterServerOptions",
    "ReplayServerConfiguration", "ReplayServerOptions", "RlxServerConfiguration",
    "RlxServerOptions", "S3Location", "leave_at_once", "leave_undisturbed", "load_actor",
    "load_export", "load_learner", "load_parameter_server", "load_replay_server",
    "load_rlx_server", "require_interval_of_eviction", "require_none_of", "run_command"
]  # fmt: skip
