"""What an environment embeds to be trained: needs numpy and nothing else.

``rlx_client``        ``Client``: init, send, reset, truncate
``vector_client``     ``VectorClient``: many environments on one connection; ``Steps``, with the
                      flags START, TERMINATED, TRUNCATED and FINAL, is what they report
``backoff``           how often and how long to try when the server is away
``gymnasium_runner``  drives any Gymnasium environment (needs Gymnasium)
``vector_runner``     drives Gymnasium's vector environments
"""

from relaax.client.backoff import Backoff
from relaax.client.failure import Failure
from relaax.client.rlx_client import Client
from relaax.client.vector_client import VectorClient
from relaax.steps import FINAL, START, TERMINATED, TRUNCATED, Steps

__all__ = [
    "FINAL",
    "START",
    "TERMINATED",
    "TRUNCATED",
    "Backoff",
    "Client",
    "Failure",
    "Steps",
    "VectorClient",
]
