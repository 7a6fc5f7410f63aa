"""Where the parameter server keeps metrics.

``EventWriter`` writes TensorBoard event files, ``S3Mirror`` copies them to AWS S3, and
``EpisodeReturns`` watches the episodes' rewards on their way.
"""

from relaax.server.parameter_server.metrics.episode_returns import EpisodeReturns
from relaax.server.parameter_server.metrics.event_writer import EventWriter
from relaax.server.parameter_server.metrics.s3_mirror import S3Mirror

__all__ = ["EpisodeReturns", "EventWriter", "S3Mirror"]
