"""The generic bridge: gRPC between workers and the parameter server, from ``protos/``.

An algorithm uses it by exporting ``Bridge`` and ``BridgeControl`` from here; the object that its
``ParameterServer.bridge()`` returns then answers the calls.
"""

from relaax.common.bridge.control import BridgeControl
from relaax.common.bridge.stub import Bridge

__all__ = ["Bridge", "BridgeControl"]
