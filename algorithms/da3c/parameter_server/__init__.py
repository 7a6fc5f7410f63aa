"""DA3C's parameter server."""

from .parameter_server import ParameterServer

__all__ = ["ParameterServer"]
