"""Choices by another process's policies: both ends of it, an agent's and an inference server's."""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.acting.policies import PinnedPolicy, PoliciesByName
from relaax.algorithm_base import DEFAULT, EvaluatedPolicy, Version
from relaax.algorithm_base.inference import (
    ACTION,
    EXTRAS,
    NOISE,
    OBSERVATION,
    OBSERVATIONS,
    RECURRENT_STATE,
    Answer,
    ArrayForm,
    Inference,
    Question,
)
from relaax.learning.distributions.base import ActionHead
from relaax.learning.exploration.noise import Clock
from relaax.learning.model import Choice, PolicyModel
from relaax.learning.networks.manifest import NetworkParameters
from relaax.learning.policy import Policy
from relaax.learning.rollouts import Columns
from relaax.observations import Observations

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

#: An inference server keeps the parameters of so many named policies: those asked for last.
MOST_POLICIES = 32

#: The version of parameters that nothing was chosen with yet.
_UNKNOWN = Version(0)


class RemoteParameters(NetworkParameters):
    """The parameters of the policy ``name``, which another process has."""

    def __init__(self, name: str) -> None:
        super().__init__({})
        self.name = name


class RemoteModel:
    """A ``PolicyModel`` whose policies and network another process has; it needs no TensorFlow.

    A ``PolicyHolder`` of the default policy, too, whose version each choice reports anew, and
    ``PoliciesByName``. ``forms`` are the arrays of questions and answers: see ``forms_of``.
    """

    def __init__(self, inference: Inference, forms: Mapping[str, ArrayForm]) -> None:
        self._inference = inference
        #: The global step as the server has told it last.
        self.global_t = 0
        self.current = _remote(DEFAULT)
        inference.expect(forms)

    def batch_size(self, count: int) -> int:
        """Return ``count``: the server pads batches."""
        return count

    def choose(
        self,
        parameters: NetworkParameters,
        observations: Observations,
        recurrent_state: FloatArray,
        noise: FloatArray,
    ) -> Choice:
        """See PolicyModel; the choice has the version that the server has chosen with."""
        if not isinstance(parameters, RemoteParameters):
            raise TypeError(f"another process has the parameters, and not {parameters!r}")
        question = Question(parameters.name, observations, recurrent_state, noise)
        answer = self._inference.choose(question)
        self.global_t = answer.global_t
        return Choice(
            answer.actions, answer.extras, answer.recurrent_state, answer.version, answer.times
        )

    def of(self, name: str) -> PinnedPolicy:
        """See PoliciesByName."""
        return PinnedPolicy(_remote(name))

    def keep(self, names: Collection[str]) -> None:
        """See PoliciesByName: nothing is kept here."""

    def check(self) -> None:
        """See PoliciesByName: a choice raises its own error."""

    def close(self) -> None:
        """End asking."""
        self._inference.close()


class PlayedVersions:
    """Which version has chosen the actions of each slot's episode, where another process has it.

    An inference server's versions are the learner's count of its steps: see ``PublishedSource``.
    """

    def __init__(self) -> None:
        #: None where there were several.
        self._of_slot: dict[int, Version | None] = {}

    def start(self, slots: IntArray) -> None:
        """Forget the episodes before in ``slots``, or the environments that have gone."""
        for slot in slots.tolist():
            self._of_slot.pop(slot, None)

    def chose(self, slots: IntArray, version: Version) -> None:
        """Note that a version has chosen for ``slots``."""
        for slot in slots.tolist():
            if self._of_slot.setdefault(slot, version) != version:
                self._of_slot[slot] = None

    def info(self, slot: int) -> EvaluatedPolicy | None:
        """Return the policy of a slot's episode; None if it was played by several versions."""
        version = self._of_slot.get(slot)
        if version is None:
            return None
        return EvaluatedPolicy(version.number, None, by_learner=True)


def _remote(name: str) -> Policy:
    return Policy(_UNKNOWN, RemoteParameters(name), name=name)


class LocalInference:
    """Answers other processes by the ``policies`` of this one; plays ``Answering``.

    ``global_t`` returns the global step, by which their exploration goes. For one thread: see
    ``relaax.inference.batching``.
    """

    def __init__(
        self,
        model: PolicyModel,
        policies: PoliciesByName,
        forms: Mapping[str, ArrayForm],
        global_t: Clock,
    ) -> None:
        self._model = model
        self._global_t = global_t
        self._policies = policies
        self._forms = forms
        #: Names, those asked for last at the end.
        self._asked: OrderedDict[str, None] = OrderedDict()

    def forms(self) -> Mapping[str, ArrayForm]:
        """See Answering."""
        return self._forms

    def choose(self, question: Question) -> Answer:
        """See Answering; a name that is asked for first is pulled meanwhile."""
        self._policies.check()
        policy = self._policies.of(question.policy).current
        self._note(question.policy)
        choice = self._model.choose(
            policy.parameters, question.observations, question.recurrent_state, question.noise
        )
        return Answer(
            choice.actions, choice.extras, choice.recurrent_state, policy.version, self._global_t()
        )

    def close(self) -> None:
        """Ask for no newer parameters."""
        self._policies.close()

    def _note(self, name: str) -> None:
        if name not in self._asked:
            while len(self._asked) >= MOST_POLICIES:
                self._asked.popitem(last=False)
            self._asked[name] = None
            self._policies.keep(self._asked)
        self._asked.move_to_end(name)


def forms_of(columns: Columns, actions: ActionHead) -> dict[str, ArrayForm]:
    """Return the arrays of questions and answers, for one environment."""
    shape, dtype = columns.observation_shape, columns.observation_dtype
    forms: dict[str, ArrayForm] = {}
    if isinstance(shape, Mapping):
        types: Any = dtype
        for name, part in shape.items():
            forms[OBSERVATIONS + name] = _form(types[name], part)
    else:
        forms[OBSERVATION] = _form(dtype, shape)
    noise = actions.noise(np.random.default_rng(0), 1)
    forms[RECURRENT_STATE] = _form(np.float32, (columns.recurrent_size,))
    forms[NOISE] = _form(noise.dtype, noise.shape[1:])
    forms[ACTION] = _form(columns.action_dtype, columns.action_shape)
    for name in columns.of_policy:
        forms[EXTRAS + name] = _form(columns.extras[name].dtype, columns.extras[name].shape)
    return forms


def _form(dtype: Any, shape: tuple[int, ...]) -> ArrayForm:
    return ArrayForm(np.dtype(dtype), tuple(shape))
