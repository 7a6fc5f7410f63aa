"""Metrics of the parameter server.

``queued_metrics``     hands metrics to a log, on a thread of its own
``event_writer``       writes metrics to TensorBoard event files
``wandb_log``          hands them to Weights & Biases, to the same run after a restart
``worker_runs``        the same to the runs of a process's workers
``event_file``         one event file
``run_description``    the configuration, as TensorBoard shows it
``client_limits``      limits on the metrics that clients name
``s3_mirror``          copies event files to AWS S3
"""

from relaax.telemetry.training.client_limits import ClientMetricLimits
from relaax.telemetry.training.event_writer import EventWriter, SeveralMetrics
from relaax.telemetry.training.run_description import describe_run
from relaax.telemetry.training.s3_mirror import S3Mirror
from relaax.telemetry.training.wandb_log import RunRecord, WandbWriter
from relaax.telemetry.training.worker_runs import WorkerRuns, worker_runs

__all__ = [
    "ClientMetricLimits", "EventWriter", "RunRecord", "S3Mirror", "SeveralMetrics", "WandbWriter",
    "WorkerRuns", "describe_run", "worker_runs"
]  # fmt: skip
