"""What operators see of a parameter server."""

from collections.abc import Iterable

from relaax.algorithm_base import ParameterServerBase
from relaax.server.common.operators import Metric, counter, gauge
from relaax.server.parameter_server.progress import TrainingProgress


def figures(parameter_server: ParameterServerBase, progress: TrainingProgress) -> Iterable[Metric]:
    """Yield how a training is; what is not known is left out."""
    yield gauge("global_step", "Environment steps of all agents together", progress.global_t)
    updates = parameter_server.updates()
    if updates is not None:
        yield counter("updates", "Updates of the parameters, of earlier starts too", updates)
    yield gauge("steps_per_second", "The same in the last seconds", progress.steps_per_s)
    for name, means, value in (
        ("last_global_step", "The global step at which the training is over", progress.last_t),
        ("mean_return", "Mean return of the latest episodes", progress.mean_return),
        ("goal_return", "The mean return at which the training is over", progress.goal_return),
        ("mean_evaluation", "Mean return of the latest evaluations", progress.mean_evaluation),
        ("training_environments", "Environments of all RLX servers", progress.environments),
        ("training_connections", "Connections of all RLX servers", progress.connections),
    ):
        if value is not None:
            yield gauge(name, means, value)
