"""What does not fit together between streams, policies and trainers of an experiment."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from relaax.errors import did_you_mean_one_of
from relaax.experiments.population import streams_of
from relaax.experiments.workers import (
    ActorWorker,
    AgentSpec,
    BufferWorker,
    InferenceStream,
    Policy,
    SampleStream,
)
from relaax.experiments.written import NamedExperiment

_INFERENCE, _SAMPLE = InferenceStream.Type, SampleStream.Type

#: The sample streams of those that take steps, or draw them.
_SAMPLE_ENDS = {
    "trainers": ["sample_stream"],
    "buffers": ["from_sample_stream", "to_sample_stream"],
}

#: Yields the mistakes of an actor.
_ActorCheck: TypeAlias = Callable[[ActorWorker, NamedExperiment], Iterator[str]]


def mistakes_of_streams(experiment: NamedExperiment) -> list[str]:
    """Return a sentence for each mistake."""
    unknown = each_once(experiment, _unknown_streams)
    between = [*each_once(experiment, _policies_of_specs), *_policies(experiment)]
    return [*unknown, *between, *_ends(experiment), *_shared(experiment), *_buffers(experiment)]


def each_once(experiment: NamedExperiment, check: _ActorCheck) -> list[str]:
    """Return the mistakes of actors, each at the first one that has it."""
    said: dict[str, int] = {}
    for number, actor in enumerate(experiment.config.actors):
        for mistake in check(actor, experiment):
            said.setdefault(mistake, number)
    return [f"actors: {number}: {mistake}" for mistake, number in said.items()]


def _unknown_streams(actor: ActorWorker, experiment: NamedExperiment) -> Iterator[str]:
    served = policies_of_inference(experiment)
    taken = dict(policies_of_samples(experiment))
    # What is wrong with a buffer is said of the buffer.
    taken |= {buffer.takes.stream_name: "" for buffer in experiment.config.buffers}
    for population in experiment.config.population_manager:
        taken |= dict.fromkeys(streams_of(population), "")
    if actor.is_evaluation:
        taken = dict.fromkeys(evaluated_streams(experiment), "")
    taker = "trainer or buffer" if experiment.config.buffers else "trainer"
    taker = "evaluation or population manager" if actor.is_evaluation else taker
    for inference in actor.inference_streams:
        if inference.type_ is _INFERENCE.NAME and inference.stream_name not in served:
            yield unknown_name("inference stream", inference.stream_name, served, "policy worker")
    for sample in actor.sample_streams:
        if sample.type_ is not _SAMPLE.NULL and sample.stream_name not in taken:
            yield _not_taken(sample.stream_name, experiment) or unknown_name(
                "sample stream", sample.stream_name, taken, taker
            )


def _not_taken(name: str, experiment: NamedExperiment) -> str | None:
    """Return why a stream of trainers takes no steps of actors: they draw from buffers."""
    buffers = dict.fromkeys(repr(b.takes.stream_name) for b in buffers_of(experiment, name))
    if not buffers or repr(name) in buffers:
        return None
    return (
        f"the trainers of the sample stream {name!r} draw from buffer workers: name a stream of "
        f"these, {' or '.join(buffers)}"
    )


def _policies_of_specs(actor: ActorWorker, experiment: NamedExperiment) -> Iterator[str]:
    """Yield where no trainer of the sample streams learns the policy that acts."""
    taken = policies_of_samples(experiment)
    for number, spec in enumerate(actor.agent_specs):
        acts = acting_policy(actor, spec, experiment)
        learnt = {name: taken[name] for name in sample_streams_of(actor, spec) if name in taken}
        if acts in taken.values() and learnt and acts not in learnt.values():
            name, policy = next(iter(learnt.items()))
            yield (
                f"agent_specs: {number}: the policy {acts!r} chooses the actions, and the trainer "
                f"of the sample stream {name!r} learns the policy {policy!r}: steps go to the "
                "trainer of the policy that acts"
            )


def _policies(experiment: NamedExperiment) -> Iterator[str]:
    """Yield policies that have no trainer, and those that are other ones than their trainer's."""
    config = experiment.config
    trained = {trainer.policy_name: trainer.policy for trainer in reversed(config.trainers)}
    users: list[tuple[str, str, Policy | None]] = []
    for number, worker in enumerate(config.policies):
        users.append((f"policies: {number}", worker.policy_name, worker.policy))
    for number, actor in enumerate(config.actors):
        for place, stream in enumerate(actor.inference_streams):
            if stream.policy_name is not None:
                at = f"actors: {number}: inference_streams: {place}"
                users.append((at, stream.policy_name, stream.policy))
    for at, name, policy in users:
        if name not in trained:
            yield f"{at}: {unknown_name('policy', name, trained, 'trainer')}"
        elif policy != trained[name]:
            yield f"{at}: policy: is another one than that of the trainers of {name!r}"


def _ends(experiment: NamedExperiment) -> Iterator[str]:
    """Yield workers whose stream is no name."""
    for number, worker in enumerate(experiment.config.policies):
        if worker.inference_stream.type_ is not _INFERENCE.NAME:
            yield f"policies: {number}: inference_stream: must be the name of a stream"
    for kind, keys in _SAMPLE_ENDS.items():
        for number, taker in enumerate(getattr(experiment.config, kind)):
            for key in keys:
                stream = getattr(taker, key)
                if stream != SampleStream(type_=_SAMPLE.NAME, stream_name=stream.stream_name):
                    yield (
                        f"{kind}: {number}: {key}: must be the name of a stream; the type and "
                        "when_full of the actors' stream count"
                    )


def _shared(experiment: NamedExperiment) -> Iterator[str]:
    """Yield streams of two policies, and trainers of one policy that differ."""
    config = experiment.config
    served, learnt = policies_of_inference(experiment), _policies_of_trainers(experiment)
    for number, worker in enumerate(config.policies):
        name = worker.inference_stream.stream_name
        if served.get(name, worker.policy_name) != worker.policy_name:
            yield f"policies: {number}: the stream {name!r} has another policy, {served[name]!r}"
    for number, trainer in enumerate(config.trainers):
        name = trainer.sample_stream.stream_name
        if learnt.get(name, trainer.policy_name) != trainer.policy_name:
            yield (
                f"trainers: {number}: the trainer of another policy, {learnt[name]!r}, has the "
                f"sample stream {name!r}: each policy needs a stream of its own"
            )
        others = [t for t in config.trainers[:number] if t.policy_name == trainer.policy_name]
        if any(other != trainer for other in others):
            yield (
                f"trainers: {number}: another trainer of policy {trainer.policy_name!r} has "
                "other keys; trainers of one policy are alike"
            )


def _buffers(experiment: NamedExperiment) -> Iterator[str]:
    """Yield buffers that no trainer draws from, and those that take what others take."""
    learnt = _policies_of_trainers(experiment)
    buffers = experiment.config.buffers
    first = {each.takes.stream_name: each.to_sample_stream for each in reversed(buffers)}
    for number, buffer in enumerate(buffers):
        taken, drawn = buffer.takes.stream_name, buffer.to_sample_stream.stream_name
        if drawn not in learnt:
            unknown = unknown_name("sample stream", drawn, learnt, "trainer")
            yield f"buffers: {number}: to_sample_stream: {unknown}"
        if taken in learnt:
            yield (
                f"buffers: {number}: from_sample_stream: trainers have the stream {taken!r}, too: "
                "give the buffer's another name, which actors name"
            )
        elif first[taken].stream_name != drawn:
            yield (
                f"buffers: {number}: from_sample_stream: {taken!r} has another buffer, of the "
                f"trainers of {first[taken].stream_name!r}: each needs a stream of its own"
            )


def unused_streams(experiment: NamedExperiment) -> Iterator[str]:
    """Yield streams of policy workers and trainers that no agent of an actor has.

    The experiment has no other mistake.
    """
    choosing: set[str] = set()
    learnt: set[str] = set()
    for actor in experiment.config.actors:
        for spec in actor.agent_specs:
            inference = actor.inference_streams[spec.inference_stream_idx]
            if inference.type_ is _INFERENCE.NAME:
                choosing.add(inference.stream_name)
            learnt.update(sample_streams_of(actor, spec))
    for name in policies_of_inference(experiment):
        if name not in choosing:
            yield f"policies: no actor has an agent whose actions the stream {name!r} chooses"
    for name in policies_of_samples(experiment):
        if name not in learnt:
            is_buffered = any(each.takes.stream_name == name for each in experiment.config.buffers)
            owners = "buffers" if is_buffered else "trainers"
            yield f"{owners}: no actor has an agent whose steps go to the stream {name!r}"


def policies_of_inference(experiment: NamedExperiment) -> dict[str, str]:
    """Return the policy of each stream of policy workers, by the stream's name."""
    return {
        worker.inference_stream.stream_name: worker.policy_name
        for worker in reversed(experiment.config.policies)
        if worker.inference_stream.type_ is _INFERENCE.NAME
    }


def acting_policy(actor: ActorWorker, spec: AgentSpec, experiment: NamedExperiment) -> str | None:
    """Return the policy that acts for a specification's agents, if that is known."""
    stream = actor.inference_of(spec)
    if stream is None:
        return None
    return stream.policy_name or policies_of_inference(experiment).get(stream.stream_name)


def policies_of_samples(experiment: NamedExperiment) -> dict[str, str]:
    """Return the policy that learns from each sample stream of actors, by the stream's name.

    Its trainers take the steps, or the buffers that these draw from.
    """
    learnt = _policies_of_trainers(experiment)
    buffers = [
        each
        for each in reversed(experiment.config.buffers)
        if each.to_sample_stream.stream_name in learnt
    ]
    drawn = {each.to_sample_stream.stream_name for each in buffers}
    found = {name: policy for name, policy in learnt.items() if name not in drawn}
    return found | {
        each.takes.stream_name: learnt[each.to_sample_stream.stream_name] for each in buffers
    }


def evaluated_streams(experiment: NamedExperiment) -> dict[str, list[str]]:
    """Return the policies whose evaluated episodes a stream takes, by the stream's name."""
    found: dict[str, list[str]] = {}
    for manager in experiment.config.eval_managers:
        found.setdefault(manager.eval_sample_stream.stream_name, []).append(manager.policy_name)
    for population in experiment.config.population_manager:
        for name in streams_of(population):
            found.setdefault(name, []).extend(population.population)
    return found


def buffers_of(experiment: NamedExperiment, name: str) -> list[BufferWorker]:
    """Return the buffers that the trainers of a sample stream draw from."""
    buffers = experiment.config.buffers
    return [each for each in buffers if each.to_sample_stream.stream_name == name]


def _policies_of_trainers(experiment: NamedExperiment) -> dict[str, str]:
    """Return the policy that the trainers of each sample stream learn, by the stream's name."""
    return {
        trainer.sample_stream.stream_name: trainer.policy_name
        for trainer in reversed(experiment.config.trainers)
        if trainer.sample_stream.type_ is not _SAMPLE.NULL
    }


def sample_streams_of(actor: ActorWorker, spec: AgentSpec) -> list[str]:
    """Return the names of the sample streams that take the steps of a specification's agents."""
    streams = actor.samples_of(spec)
    return [stream.stream_name for stream in streams if stream.type_ is not _SAMPLE.NULL]


def unknown_name(kind: str, name: str, known: Mapping[str, object], owner: str) -> str:
    """Return a sentence: no ``owner`` has a stream or policy of this name."""
    there = ", ".join(sorted(known)) or "no names"
    meant = did_you_mean_one_of(name, list(known))
    return f"no {owner} has the {kind} {name!r}; there are: {there}{meant}"
