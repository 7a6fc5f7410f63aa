"""The generic bridge: gRPC between workers and the parameter server, from ``protos/``.

An algorithm uses it by exporting ``Bridge`` and ``BridgeControl`` from here; the object that its
``ParameterServer.bridge()`` returns then answers the calls.
"""

from relaax.bridge.control import BridgeControl
from relaax.bridge.stub import Bridge

__all__ = ["Bridge", "BridgeControl"]
