"""The lineage of a learner: which training its publications continue, and from where."""

import json
import logging
import re
import secrets
from dataclasses import dataclass
from typing import Any

from relaax.algorithm_base import Learner, Lineage, ParameterLink
from relaax.checkpoints import BlobStore
from relaax.checkpoints.manifest import steps_of_manifests
from relaax.errors import ConfigurationError, DamagedCheckpoint

_log = logging.getLogger(__name__)

#: The file beside the checkpoints that has the name of the training.
NAME_FILE = "training.json"

_NAME = re.compile(r"[0-9a-f]{8,64}")


@dataclass
class LearnerLineage:
    """The lineage of one learner, which its checkpoints carry on.

    Whatever another learner continues has the same ``training``, and checkpoints that are at least
    as new as those that this one ``resumes`` from. Where nothing is saved (``saves``), no other
    learner can continue it.
    """

    training: str
    #: The newest step that is in the place of its checkpoints.
    holds: int
    #: The step that another learner would begin with.
    resumes: int
    saves: bool
    #: Whether its values replace those of any other lineage.
    is_afresh: bool = False

    def at(self, iteration: int) -> Lineage:
        """Return what is shown with the values of a step."""
        holds, resumes = (self.holds, self.resumes) if self.saves else (iteration, iteration)
        return Lineage(self.training, holds, resumes, self.is_afresh)

    def saved(self, step: int) -> None:
        """Take note of a checkpoint."""
        self.holds = self.resumes = step


def lineage_in(store: BlobStore | None, restored: int, is_afresh: bool) -> LearnerLineage:
    """Return the lineage of a learner that begins with the step ``restored`` of ``store``.

    Where no training has a name yet, it gets one before anything of it is published: a learner that
    is killed before its first checkpoint is known again, and one whose place was lost is not.
    """
    if store is None:
        return LearnerLineage(_new_name(), 0, 0, saves=False, is_afresh=is_afresh)
    names = store.names()
    steps = steps_of_manifests(names)
    return LearnerLineage(
        training=_name_in(store, names, is_old=bool(steps)),
        holds=max(steps, default=0),
        resumes=restored,
        saves=True,
        is_afresh=is_afresh,
    )


def connect_restored(
    learner: Learner, bridge: ParameterLink, iteration: int, is_afresh: bool
) -> None:
    """Connect a learner that has taken so many steps; ConfigurationError where they are not known.

    One that publishes shows what it continues. One that shares gradients takes the values of the
    parameter server: its own would be lost where that has lost its checkpoints.
    """
    if not learner.values():
        values = bridge.pull()
        _require_trained(values.version.number, iteration, is_afresh)
        learner.take(values)


def _require_trained(version: int, iteration: int, is_afresh: bool) -> None:
    """Raise ConfigurationError for a learner that has taken steps, and values of version 0."""
    is_lost = iteration > 0 and not version
    if is_afresh and not is_lost:
        _log.warning(
            "--start-afresh has no effect: the parameter server has values that were trained, or "
            "this learner has none. Take it away, since it would have one at a later start"
        )
    if is_lost and not is_afresh:
        raise ConfigurationError(
            f"this learner goes on from its step {iteration:,}, and the parameter server begins "
            "with version 0: it has lost its checkpoints, or is that of another training. With "
            "--start-afresh the learner takes the parameters that are there"
        )


def _name_in(store: BlobStore, names: list[str], is_old: bool) -> str:
    """Return the training's name, which a place of before there were names does not have."""
    if NAME_FILE in names:
        try:
            return _parsed(json.loads(store.get(NAME_FILE)))
        except (DamagedCheckpoint, ValueError) as error:
            _log.warning(
                "%s in %s cannot be read, so the training gets another name: %s",
                NAME_FILE, store.location(), error,
            )  # fmt: skip
    elif is_old:
        return ""
    name = _new_name()
    store.put(NAME_FILE, json.dumps({"name": name}).encode())
    return name


def _parsed(content: Any) -> str:
    name = content.get("name") if isinstance(content, dict) else None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"it has no name of hexadecimal digits, but {content!r}")
    return name


def _new_name() -> str:
    return secrets.token_hex(4)
