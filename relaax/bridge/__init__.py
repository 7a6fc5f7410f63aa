"""The generic bridge: gRPC between workers and the parameter server, from ``protos/``.

An algorithm uses it unless it exports a ``BridgeControl`` of its own; the object that its
``ParameterServer.bridge()`` returns then answers the calls.

``control``          makes both ends
``stub``             the worker's end
``sharded``          the same to a parameter server in several shards
``service``          the parameter server's end; it calls roles
``sender_totals``    what was counted of each sender, now and in a checkpoint
``places``           which place an environment has among all
``gate``             keeps calls out of a parameter server that is about to stop
``refusals``         refuses a call, and says who has made it
``traffic``          counts its calls and their bytes
``payloads``         messages that carry many bytes, without protobuf's copies of them
``vectors``          those that carry a vector
``shard_messages``   those that carry a slice of one
``channels``         opens channels, with the token and certificate of this process
``reachability``     pauses between calls that fail, and why a server is not reached
``guarded_server``   a gRPC server that asks callers for theirs
``channel_options``  gRPC settings that both ends share
"""

from relaax.bridge.control import BridgeControl
from relaax.bridge.stub import Bridge

__all__ = ["Bridge", "BridgeControl"]
