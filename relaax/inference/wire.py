"""Encodes and decodes the messages of the inference service."""

import zlib
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from relaax.algorithm_base import DEFAULT, Version
from relaax.algorithm_base.inference import (
    ACTION,
    EXTRAS,
    NOISE,
    OBSERVATION,
    OBSERVATIONS,
    RECURRENT_STATE,
    Answer,
    ArrayForm,
    Question,
    ServerTimes,
)
from relaax.inference import inference_pb2
from relaax.net.payloads import PayloadCodec, WithPayload
from relaax.observations import Observations
from relaax.replay.array_bytes import below, dtype_of, named, read, written

Array = npt.NDArray[Any]

SERVICE = inference_pb2.DESCRIPTOR.services_by_name["Inference"]
SERVICE_NAME = SERVICE.full_name
QUESTIONS = PayloadCodec(inference_pb2.Question, "data")
ANSWERS = PayloadCodec(inference_pb2.Answer, "data")

#: Both recurrent states have two parts before the axis of environments: cell and output.
_PARTS = 2


def question_message(question: Question, forms: int) -> WithPayload[inference_pb2.Question]:
    """Return a question as a message; ``forms`` is the digest of the caller's."""
    arrays = {
        **observation_arrays(question.observations),
        RECURRENT_STATE: question.recurrent_state,
        NOISE: question.noise,
    }
    policy = "" if question.policy == DEFAULT else question.policy
    fields = inference_pb2.Question(policy=policy, arrays=_array_messages(arrays), forms=forms)
    return WithPayload(fields, written(arrays.values()))


def question_of(message: WithPayload[inference_pb2.Question]) -> Question:
    """Return the question of a message; ValueError where its arrays do not fit one another."""
    arrays = _arrays_of(message)
    state, noise = _popped(arrays, RECURRENT_STATE), _popped(arrays, NOISE)
    observations: Observations = below(OBSERVATIONS, arrays)
    if OBSERVATION in arrays:
        observations = arrays[OBSERVATION]
    _require_same_count(observation_arrays(observations), state, noise)
    return Question(message.fields.policy or DEFAULT, observations, state, noise)


def answer_message(answer: Answer) -> WithPayload[inference_pb2.Answer]:
    """Return an answer as a message."""
    arrays = {
        ACTION: answer.actions,
        RECURRENT_STATE: answer.recurrent_state,
        **named(EXTRAS, answer.extras),
    }
    fields = inference_pb2.Answer(
        arrays=_array_messages(arrays),
        version=answer.version.number,
        incarnation=answer.version.incarnation,
        global_t=answer.global_t,
    )
    if answer.times is not None:
        fields.queue_s, fields.inference_s = answer.times
    return WithPayload(fields, written(arrays.values()))


def answer_of(message: WithPayload[inference_pb2.Answer]) -> Answer:
    """Return the answer of a message; ValueError where its arrays do not fit one another."""
    arrays, fields = _arrays_of(message), message.fields
    state, actions = _popped(arrays, RECURRENT_STATE), _popped(arrays, ACTION)
    extras = below(EXTRAS, arrays)
    _require_same_count(extras, state, actions)
    version = Version(fields.version, fields.incarnation)
    times = ServerTimes(fields.queue_s, fields.inference_s)
    return Answer(actions, extras, state, version, fields.global_t, times)


def description_of(forms: Mapping[str, ArrayForm]) -> inference_pb2.Description:
    """Return the forms of arrays as a message."""
    return inference_pb2.Description(
        arrays=[
            inference_pb2.Array(name=name, dtype=form.dtype.str, shape=form.shape)
            for name, form in forms.items()
        ]
    )


def forms_digest(forms: Mapping[str, ArrayForm]) -> int:
    """Return 32 bits by which processes know that their forms are the same."""
    written_out = [f"{name} {form.dtype.str} {form.shape}" for name, form in sorted(forms.items())]
    return zlib.crc32("\n".join(written_out).encode())


def forms_of(description: inference_pb2.Description) -> dict[str, ArrayForm]:
    """Return the forms in a message; ValueError for types that are not numeric."""
    return {
        array.name: ArrayForm(dtype_of(array.dtype), tuple(array.shape))
        for array in description.arrays
    }


def observation_arrays(observations: Observations) -> dict[str, Array]:
    """Return observations by the names that they have in messages."""
    if isinstance(observations, dict):
        return named(OBSERVATIONS, observations)
    return {OBSERVATION: observations}


def _array_messages(arrays: Mapping[str, Array]) -> list[inference_pb2.Array]:
    return [
        inference_pb2.Array(name=name, dtype=array.dtype.newbyteorder("<").str, shape=array.shape)
        for name, array in arrays.items()
    ]


def _arrays_of(message: WithPayload[Any]) -> dict[str, Array]:
    (data,) = message.payload or (memoryview(b""),)
    described = message.fields.arrays
    forms = [(dtype_of(array.dtype), tuple(array.shape)) for array in described]
    arrays = read(memoryview(data), forms)
    return {each.name: array for each, array in zip(described, arrays, strict=True)}


def _popped(arrays: dict[str, Array], name: str) -> Array:
    if name not in arrays:
        raise ValueError(f"a message has no array {name!r}")
    return arrays.pop(name)


def _require_same_count(arrays: Mapping[str, Array], state: Array, others: Array) -> None:
    """Raise ValueError unless all arrays are of as many environments."""
    if state.ndim != 3 or len(state) != _PARTS:
        raise ValueError(f"a recurrent state is [2, B, H], this one is {state.shape}")
    counts = {array.shape[:1] for array in (*arrays.values(), others)} | {state.shape[1:2]}
    if len(counts) != 1 or counts == {()}:
        raise ValueError(f"arrays of a message are of {sorted(counts)} environments")
