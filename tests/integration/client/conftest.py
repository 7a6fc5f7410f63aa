"""The servers that clients are tested with."""

from client_servers import (
    close,
    server,
    start_recording_server,
    start_server,
    unused_url,
    usual_answer,
)

__all__ = [
    "close",
    "server",
    "start_recording_server",
    "start_server",
    "unused_url",
    "usual_answer",
]
