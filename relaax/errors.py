"""The errors that RELAAX raises.

RelaaxError
├── ConfigurationError      what the user wrote cannot be used: exit status 2, one line
├── ProtocolError           a peer broke the RLX protocol: its connection is closed, nobody else's
│   └── InvalidState        a state that the network cannot take
├── CheckpointError         a checkpoint cannot be saved or restored
│   ├── DamagedCheckpoint   its bytes are not what its manifest says
│   └── CheckpointMismatch  it was made by another network or algorithm
├── BridgeError             the parameter server refused a call
└── ComputeError            the compute process of batched inference is gone
"""


class RelaaxError(Exception):
    """The root of all errors of this package."""


class ConfigurationError(RelaaxError):
    """What the user wrote cannot be used; the message names the key and the file."""


class ProtocolError(RelaaxError):
    """A peer sent what the RLX protocol does not allow."""


class InvalidState(ProtocolError):
    """A state's shape, type or values do not fit the configured network."""


class CheckpointError(RelaaxError):
    """A checkpoint cannot be saved or restored."""


class DamagedCheckpoint(CheckpointError):
    """A checkpoint's bytes are missing, cut or changed."""


class CheckpointMismatch(CheckpointError):
    """A checkpoint belongs to another network or algorithm; the message says what differs."""


class BridgeError(RelaaxError):
    """The parameter server refused a call; repeating it will not help."""


class ComputeError(RelaaxError):
    """The compute process of batched inference has ended, or cannot serve."""
