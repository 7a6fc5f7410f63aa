"""The RLX protocol, version 1: one environment, messages in JSON.

``npz``           one array as the bytes of a compressed ``.npz`` file
``codec``         values as JSON text
``messages``      steps and their answers, as both ends write and read them
"""

from relaax.protocol.json.messages import ClientCodec, ServerCodec, decode_agent

__all__ = ["ClientCodec", "ServerCodec", "decode_agent"]
