"""The servers that clients are tested with."""

from client_servers import close, server, start_recording_server, unused_url

__all__ = ["close", "server", "start_recording_server", "unused_url"]
