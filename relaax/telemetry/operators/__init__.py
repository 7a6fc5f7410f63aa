"""A server's health, and its figures for Prometheus.

``port``           the HTTP port: /healthz, /readyz and /metrics
``http_server``    answers there, whatever strangers do
``families``       figures in Prometheus' types, and counts of saves
``certificates``   when certificates expire, and a warning before they do
"""

from relaax.telemetry.operators.families import Metric, SaveRecord, counter, gauge
from relaax.telemetry.operators.port import OperatorPort, operator_listener

__all__ = ["Metric", "OperatorPort", "SaveRecord", "counter", "gauge", "operator_listener"]
