"""Metrics of the parameter server.

``queued_metrics``     hands metrics to a log, on a thread of its own
``client_metric_limits``  limits on metrics that clients name
``event_writer``       writes metrics to TensorBoard event files
``wandb_log``          hands them to Weights & Biases
``run_record``         the run's name after a restart, and its last steps
``event_file``         one event file
``run_description``    the configuration, as TensorBoard shows it
``episode_returns``    the returns of the last episodes, taken from the passing metrics
``s3_mirror``          copies event files to AWS S3
"""

from relaax.telemetry.training.client_metric_limits import ClientMetricLimits
from relaax.telemetry.training.episode_returns import EpisodeReturns, EvaluationScores, WorkerCount
from relaax.telemetry.training.event_writer import EventWriter, SeveralMetrics
from relaax.telemetry.training.run_description import describe_run
from relaax.telemetry.training.run_record import RunRecord
from relaax.telemetry.training.s3_mirror import S3Mirror
from relaax.telemetry.training.wandb_log import WandbWriter

__all__ = [
    "ClientMetricLimits", "EpisodeReturns", "EvaluationScores", "EventWriter", "RunRecord",
    "S3Mirror", "SeveralMetrics", "WandbWriter", "WorkerCount", "describe_run"
]  # fmt: skip
