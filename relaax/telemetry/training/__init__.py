"""Metrics of the parameter server.

``queued_metrics``     hands metrics to a log, on a thread of its own
``event_writer``       writes metrics to TensorBoard event files
``wandb_log``          hands them to Weights & Biases, to the same run after a restart
``event_file``         one event file
``run_description``    the configuration, as TensorBoard shows it
``passing_metrics``    limits on metrics of clients; returns of the last episodes, and scores
``s3_mirror``          copies event files to AWS S3
"""

from relaax.telemetry.training.event_writer import EventWriter, SeveralMetrics
from relaax.telemetry.training.passing_metrics import (
    ClientMetricLimits,
    EpisodeReturns,
    EvaluationScores,
    WorkerCount,
)
from relaax.telemetry.training.run_description import describe_run
from relaax.telemetry.training.s3_mirror import S3Mirror
from relaax.telemetry.training.wandb_log import RunRecord, WandbWriter

__all__ = [
    "ClientMetricLimits", "EpisodeReturns", "EvaluationScores", "EventWriter", "RunRecord",
    "S3Mirror", "SeveralMetrics", "WandbWriter", "WorkerCount", "describe_run"
]  # fmt: skip
