"""Metrics of the parameter server.

``event_writer``       writes metrics to TensorBoard event files, in a thread of its own
``event_log``          goes on with a new event file after a failure, such as a full disk
``event_file``         one event file
``run_description``    the configuration, as TensorBoard shows it
``episode_returns``    the returns of the last episodes, taken from the passing metrics
``environment_count``  how many environments are connected, taken from there too
``s3_mirror``          copies event files to AWS S3
``without_torch``      keeps tensorboardX from importing PyTorch
"""

from relaax.server.parameter_server.metrics.environment_count import EnvironmentCount
from relaax.server.parameter_server.metrics.episode_returns import EpisodeReturns
from relaax.server.parameter_server.metrics.event_writer import EventWriter
from relaax.server.parameter_server.metrics.run_description import describe_run
from relaax.server.parameter_server.metrics.s3_mirror import S3Mirror

__all__ = ["EnvironmentCount", "EpisodeReturns", "EventWriter", "S3Mirror", "describe_run"]
