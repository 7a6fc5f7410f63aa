"""The errors that RELAAX raises.

RelaaxError
├── ConfigurationError      the user's flags or files cannot be used: one line, exit status 2
│   ├── NotContinued        a learner does not continue what is published
│   └── OtherConfiguration  values were published with another configuration
├── ProtocolError           a peer broke the RLX protocol: only its connection is closed
│   ├── InvalidState        a state that the network cannot take
│   └── AccessDenied        it has not proved that it may connect
├── CheckpointError         a checkpoint cannot be saved or restored
│   ├── DamagedCheckpoint   its bytes do not match its manifest
│   └── CheckpointMismatch  it belongs to another network or algorithm
├── NoSuchVersion           a parameter database has no version by this identifier
├── BridgeError             the parameter server refused a call
│   ├── TokenRefused        it does not know the token that it was shown
│   ├── NotThereYet         its database has no version by an identifier
│   └── ParameterServerAway  it did not answer for a long time
├── Abandoned               the parameter server was away for very long: one line, exit status 1
├── LearningDiverged        what a learner has reached is no number: one line, exit status 1
├── AgentError              an algorithm's agent failed, or its actions cannot be used: its
│                           connection is closed, and no other
└── NoRoom                  a worker has no memory for more environments
"""

import collections.abc
import difflib


class RelaaxError(Exception):
    """The root of all errors of this package."""


class ConfigurationError(RelaaxError):
    """The user's flags or files cannot be used; the message names the key and the file."""


class NotContinued(ConfigurationError, ValueError):
    """A learner's values would replace published ones of another training, or newer ones."""


class OtherConfiguration(ConfigurationError, ValueError):
    """Values were published by a process with another configuration than this one."""


class ProtocolError(RelaaxError):
    """A peer has sent bytes that the RLX protocol does not allow."""


class InvalidState(ProtocolError):
    """A state's shape, type or values do not fit the configured network."""


class AccessDenied(ProtocolError):
    """The other end has not proved that it may connect, or does not accept this end's proof."""


class CheckpointError(RelaaxError):
    """A checkpoint cannot be saved or restored."""


class DamagedCheckpoint(CheckpointError):
    """A checkpoint's bytes are missing, cut or changed."""


class CheckpointMismatch(CheckpointError):
    """A checkpoint belongs to another network or algorithm; the message has the differences."""


class NoSuchVersion(RelaaxError):
    """A parameter database has no version with this number or tag."""


class BridgeError(RelaaxError):
    """The parameter server refused a call; repeating it will not help."""


class TokenRefused(BridgeError):
    """Another server does not know the token that this process shows: their files differ."""


class NotThereYet(BridgeError):
    """The parameter server's database has no version by an identifier; one may come."""


class ParameterServerAway(BridgeError):
    """The parameter server did not answer for so long that a worker waits no longer."""


class Abandoned(RelaaxError):
    """The parameter server was away for so long that a training may be over without it.

    ``away``: its name. ``reason``: the last error. ``has_answered``: whether it has answered since
    this process has started.
    """

    def __init__(
        self, away: str, give_up_s: float, reason: str = "", *, has_answered: bool
    ) -> None:
        if has_answered:
            message = f"{away} was away for {give_up_s:g} s (--give-up)"
            meaning = "it may have ended with the training"
        else:
            message = f"{away} could not be used within {give_up_s:g} s of the start (--give-up)"
            meaning = ""
        super().__init__(": ".join(part for part in (message, reason or meaning) if part))


class LearningDiverged(RelaaxError):
    """A learner's parameters are NaN or infinite: they are neither published nor saved."""


class AgentError(RelaaxError):
    """An agent raised an exception, or returned actions that cannot be used.

    After an exception the log has the traceback.
    """


class NoRoom(RelaaxError):
    """A worker has no memory for the environments of another connection."""


def did_you_mean(name: object, known: collections.abc.Collection[str]) -> str:
    """Return a question that names the one of ``known`` closest to ``name``, or list them all."""
    close = closest(name, known)
    return f"did you mean {close}?" if close else f"known keys are {', '.join(known)}"


def no_such_keys(
    keys: collections.abc.Iterable[object], known: collections.abc.Collection[str]
) -> str:
    """Return which keys are not ``known``, with questions; all known ones are listed once."""
    close = {str(key): closest(key, known) for key in keys}
    said = [f"{key}: no such key; did you mean {meant}?" for key, meant in close.items() if meant]
    others = [key for key, meant in close.items() if not meant]
    if others:
        said.append(f"{', '.join(others)}: no such key; known keys are {', '.join(known)}")
    return "; ".join(said)


def did_you_mean_one_of(name: object, known: collections.abc.Collection[str]) -> str:
    """Return a question to put behind a message, if one of ``known`` is close; else nothing."""
    close = closest(name, known)
    return f"; did you mean {close}?" if close else ""


def closest(name: object, known: collections.abc.Collection[str]) -> str | None:
    """Return the ``known`` word that is written most like ``name``; None if none is close."""
    return next(iter(difflib.get_close_matches(str(name), known, n=1)), None)
