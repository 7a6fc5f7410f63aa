"""The servers that clients are tested with."""

from client_servers import (
    close,
    recorder,
    server,
    silence,
    start_recording_server,
    start_server,
    unused_url,
    usual_answer,
)

__all__ = [
    "close",
    "recorder",
    "server",
    "silence",
    "start_recording_server",
    "start_server",
    "unused_url",
    "usual_answer",
]
