"""What an environment embeds to be trained: needs numpy and nothing else.

``rlx_client``        ``Client``: init, send, reset, truncate
``backoff``           how often and how long to try when the server is away
``gymnasium_runner``  drives any Gymnasium environment (needs Gymnasium)
"""

from relaax.client.backoff import Backoff
from relaax.client.failure import Failure
from relaax.client.rlx_client import Client

__all__ = ["Backoff", "Client", "Failure"]
