"""The learner: it makes updates of batches of experience."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base.checkpoint import SCHEDULE
from relaax.algorithm_base.roles import FloatVector, Gradient, Values, Version

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Input:
    """The batches that steps of a learner take of one table."""

    #: How many items a batch has.
    batch_size: int
    #: Makes a batch of a sample; other threads call it, ahead of the step.
    prepare: Callable[[Any], Any] = lambda sample: sample
    #: Whether a batch should be of the newest parameters: then none is drawn before the step before
    #: is made, and the parameters are published after each step.
    is_on_policy: bool = False
    #: Whether intrinsic rewards, where there are any, are added to those of its rollouts; false
    #: where a reward is not a part of a return, but is itself what is learnt.
    takes_intrinsic: bool = True


@dataclass(frozen=True)
class Step:
    """The results of one step of a learner."""

    #: How often the parameters were changed. After 0, of a batch without a step for instance, the
    #: step is not counted, and the parameters are published again for actors that are behind.
    updates: int = 1
    #: New priorities of a batch's items, float64 [N], by its table.
    priorities: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    #: Numbers for TensorBoard, by name.
    terms: Mapping[str, float] = field(default_factory=dict)
    #: A gradient, which a placement takes to the parameters; None where the learner has set values
    #: itself, or changed nothing.
    update: Gradient | None = None


class Learner(ABC):
    """Makes updates of batches; it does not know where it runs.

    A placement gives it batches, a worker its rollouts, the process of a learner items of tables,
    and takes its updates to the parameters. That process does so::

        learner = make_learner(config, seed)
        learner.restore(the state of the last checkpoint, if any)
        if not learner.values():
            learner.take(the values of the parameter server)
        until the training is over:
            batches = {}
            for table, each in learner.inputs.items():
                sample = each.batch_size items of the table
                batches[table] = each.prepare(sample)  # on other threads, ahead of the step
            for step in learner.steps(batches):
                a gradient moves the parameters, and ``take`` is given the newer values
            priorities go back to the replay; from time to time, what ``values`` returns is
            published, and what ``state`` returns is saved
        learner.close()
    """

    #: The batches of a step, by the table that each is drawn from.
    inputs: Mapping[str, Input]

    @property
    def is_on_policy(self) -> bool:
        """Whether a batch should be of the newest parameters."""
        return any(each.is_on_policy for each in self.inputs.values())

    @property
    def is_replaying(self) -> bool:
        """Whether a batch may be of steps of older parameters."""
        return not all(each.is_on_policy for each in self.inputs.values())

    @abstractmethod
    def steps(self, batches: Mapping[str, Any]) -> Iterator[Step]:
        """Yield one step after the other, of one batch of each input, by the table's name.

        Values that an update led to are taken before the next one is asked for.
        """

    def take(self, values: Values) -> None:
        """Go on with these values of the parameters; without a vector nothing has changed."""

    def values(self) -> Mapping[str, FloatVector]:
        """Return values that this learner sets, and that are to be published, by policy.

        They are float32 [size] and finite, and belong to the caller. A learner whose gradients move
        values elsewhere has no values at any time; other learners have some when they are made.
        """
        return {}

    def published(self, policy: str, version: Version) -> None:
        """Take note of the version that the last values of a policy have got."""

    def prepare_updates(self, most: int) -> None:
        """Do beforehand the work that updates of up to ``most`` items would have to wait for."""

    def state(self) -> Mapping[str, Array]:
        """Return all that a checkpoint needs beside values that are elsewhere, by name.

        NaN in it ends the learner: it means that learning has gone wrong.
        """
        return {}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``, which may hold more."""

    def adopt(self, state: Mapping[str, Array], iteration: int) -> None:
        """Go on with what another learner has learnt, whose state it is, as ``restore``.

        Counts of this learner's own ``progress`` stay. It has taken ``iteration`` steps.
        """
        own = self.state()
        self.restore({**state, **{name: own[name] for name in self.progress()}})

    def progress(self) -> Collection[str]:
        """Return the names of arrays of ``state`` that say how far the training is.

        By default these are its schedules.
        """
        return [name for name in self.state() if name.startswith(SCHEDULE)]

    def converted(self, state: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the state that an earlier version has saved as ``state`` returns it today.

        Names and shapes are compared after that.
        """
        return state

    def close(self) -> None:
        """Release what the learner holds."""
