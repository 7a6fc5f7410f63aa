"""Keeps gRPC from writing lines of its own; it is imported before gRPC."""

import os

# gRPC writes lines of its own to standard error, which strangers cause, in any number and with
# words of their choice, before they have shown anything. It reads this when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
