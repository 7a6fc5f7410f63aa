"""Names beside the steps: of the policy that chose, of the agent that acted, and of its group.

A builder asks for them as for other extras, by name in ``Columns.of``. The actor adds them to what
the policy says of its choice.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.replay.schema import Column

#: The name of the policy that chose, and the version of its parameters.
POLICY_NAME, POLICY_VERSION = "policy_name", "policy_version"

#: The numbers right behind the policy's parameters, by which its learner knows a publication.
POLICY_STAMP, STAMP_SIZE = "policy_stamp", 2

#: The names of the agent and of its group, as in ``relaax.steps.AgentName``.
AGENT, GROUP = "agent", "group"

#: The longest name, in UTF-8.
NAME_BYTES = 64

_NAME = Column(np.dtype(np.uint8), (NAME_BYTES,))

#: The columns by name.
LABELS: Mapping[str, Column] = {
    POLICY_NAME: _NAME,
    POLICY_VERSION: Column(np.dtype(np.int64)),
    POLICY_STAMP: Column(np.dtype(np.float32), (STAMP_SIZE,)),
    AGENT: _NAME,
    GROUP: _NAME,
}


def name_column(names: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Return names as a column, uint8 [B, NAME_BYTES]; ValueError for a longer one."""
    encoded = [name.encode() for name in names]
    for name, code in zip(names, encoded, strict=True):
        if len(code) > NAME_BYTES:
            raise ValueError(f"the name {name!r} has {len(code)} bytes, at most {NAME_BYTES}")
    return np.array(encoded, f"S{NAME_BYTES}").view(np.uint8).reshape(-1, NAME_BYTES)


def names_in(column: npt.NDArray[Any]) -> npt.NDArray[np.str_]:
    """Return the names [...] of a column [..., NAME_BYTES]."""
    codes = np.ascontiguousarray(column, np.uint8).view(f"S{NAME_BYTES}")[..., 0]
    return np.char.decode(codes, "utf-8")
