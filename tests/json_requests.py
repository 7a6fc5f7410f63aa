"""The requests of RLX version 1, written without the code under test, but for arrays."""

from dataclasses import dataclass
from typing import Any

from relaax.protocol.binary import Metric
from relaax.protocol.json import codec


@dataclass(frozen=True)
class Act:
    state: Any


@dataclass(frozen=True)
class RewardAndAct:
    reward: float
    state: Any
    action: Any = None


@dataclass(frozen=True)
class RewardAndReset:
    reward: float
    action: Any = None


Request = Act | RewardAndAct | RewardAndReset | Metric


def encode_request(request: Request) -> bytes:
    match request:
        case Act(state):
            message = ["act", codec.encode(state)]
        case RewardAndAct(reward, state, action):
            message = ["reward_and_act", reward, codec.encode(state), action]
        case RewardAndReset(reward, action):
            message = ["reward_and_reset", reward, action]
        case Metric(name, y, x):
            message = ["scalar_metric", name, y, x]
    while message[-1] is None:
        message.pop()
    return codec.encode(message).encode()
