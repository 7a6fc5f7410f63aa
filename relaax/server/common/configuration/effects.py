"""Refuses options that would have no effect beside others."""

from collections.abc import Sequence

from relaax.errors import ConfigurationError
from relaax.server.common.configuration.options import LearnerOptions, ReplayServerOptions


def require_none_of(
    options: LearnerOptions | ReplayServerOptions, names: Sequence[str], reason: str
) -> None:
    """Raise ConfigurationError if any of these options is given, which would have no effect."""
    for name in names:
        if name in options.model_fields_set:
            raise ConfigurationError(f"--{name.replace('_', '-')}: {reason}")


def require_interval_of_eviction(options: LearnerOptions | ReplayServerOptions) -> None:
    """Raise ConfigurationError for an interval of what is not done."""
    if options.evict_after is None:
        require_none_of(
            options, ("evict_interval",), "without --evict-after nothing is evicted by its age"
        )
