"""What operators see of a server: whether it is well, and its figures for Prometheus.

``port``           the HTTP port: /healthz, /readyz and /metrics
``http_server``    answers there, whatever strangers do
``families``       figures as Prometheus knows them
``save_record``    how saving goes
``certificates``   when certificates expire, and a warning before they do
"""

from relaax.telemetry.operators.families import Metric, counter, gauge
from relaax.telemetry.operators.port import OperatorPort, operator_listener
from relaax.telemetry.operators.save_record import SaveRecord

__all__ = ["Metric", "OperatorPort", "SaveRecord", "counter", "gauge", "operator_listener"]
