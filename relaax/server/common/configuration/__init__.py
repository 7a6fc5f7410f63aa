"""The servers' configuration: one YAML file for both, the command line on top of it."""

from relaax.server.common.configuration.exit_status import leave_undisturbed, run_command
from relaax.server.common.configuration.load import (
    AlgorithmSection,
    ParameterServerConfiguration,
    RlxServerConfiguration,
    load_parameter_server,
    load_rlx_server,
)
from relaax.server.common.configuration.options import (
    ParameterServerOptions,
    RlxServerOptions,
    S3Location,
)

__all__ = [
    "AlgorithmSection",
    "ParameterServerConfiguration",
    "ParameterServerOptions",
    "RlxServerConfiguration",
    "RlxServerOptions",
    "S3Location",
    "leave_undisturbed",
    "load_parameter_server",
    "load_rlx_server",
    "run_command",
]
