"""What does not fit together about evaluations: actors, managers, streams and tags."""

from collections.abc import Iterator

from relaax.configuration.actor_agents import AgentSamples
from relaax.experiments.stream_checks import (
    acting_policy,
    each_once,
    evaluated_streams,
    policies_of_samples,
    sample_streams_of,
    unknown_name,
)
from relaax.experiments.workers import ActorWorker, AgentSpec, EvalManager, SampleStream
from relaax.experiments.written import NamedExperiment


def mistakes_of_evaluations(experiment: NamedExperiment) -> list[str]:
    """Return a sentence for each mistake."""
    return [*each_once(experiment, _actor), *_managers(experiment)]


def _actor(actor: ActorWorker, experiment: NamedExperiment) -> Iterator[str]:
    """Yield why the episodes of an evaluating actor would count nowhere."""
    if not actor.is_evaluation:
        return
    if not any(sample_streams_of(actor, spec) for spec in actor.agent_specs):
        yield (
            "is_evaluation: no agent has a sample stream of an evaluation manager, or of a "
            "population's"
        )
    for number, spec in enumerate(actor.agent_specs):
        place = f"agent_specs: {number}"
        yield from (f"{place}: {mistake}" for mistake in _samples(spec))
        streams = sample_streams_of(actor, spec)
        yield from (
            f"{place}: {mistake}"
            for name in streams
            for mistake in _policy(actor, spec, name, experiment)
        )


def _samples(spec: AgentSpec) -> Iterator[str]:
    """Yield keys of a specification that an evaluation cannot have."""
    if not spec.send_full_trajectory:
        yield "is_evaluation: needs send_full_trajectory: true, since whole episodes count"
    for key in AgentSamples.model_fields:
        if key != "send_full_trajectory" and key in spec.model_fields_set:
            yield f"{key}: no effect with is_evaluation: true, where no steps are sent"


def _policy(
    actor: ActorWorker, spec: AgentSpec, stream: str, experiment: NamedExperiment
) -> Iterator[str]:
    """Yield that no manager of a stream takes episodes of the policy that acts."""
    acts = acting_policy(actor, spec, experiment)
    evaluated = evaluated_streams(experiment).get(stream)
    if acts is not None and evaluated and acts not in evaluated:
        yield (
            f"the policy {acts!r} chooses the actions, and the manager of the stream "
            f"{stream!r} evaluates the policy {evaluated[0]!r}"
        )


def _managers(experiment: NamedExperiment) -> Iterator[str]:
    config = experiment.config
    trained = {trainer.policy_name: trainer for trainer in config.trainers}
    for number, manager in enumerate(config.eval_managers):
        place, stream = f"eval_managers: {number}", manager.eval_sample_stream
        if manager.policy_name not in trained:
            yield f"{place}: {unknown_name('policy', manager.policy_name, trained, 'trainer')}"
        if any(_is_same(manager, other) for other in config.eval_managers[:number]):
            yield (
                f"{place}: tag: another manager moves the tag {manager.tag!r} of the policy "
                f"{manager.policy_name!r}: each needs a tag of its own"
            )
        yield from (
            f"{place}: eval_sample_stream: {mistake}"
            for mistake in mistakes_of_evaluated_stream(stream, experiment)
        )


def mistakes_of_evaluated_stream(
    stream: SampleStream, experiment: NamedExperiment
) -> Iterator[str]:
    """Yield why a manager can have no episodes of a stream."""
    if stream.type_ is not SampleStream.Type.NAME:
        yield "must be the name of a stream"
    elif "," in stream.stream_name:
        yield f"the name {stream.stream_name!r} may have no comma"
    elif stream.stream_name in policies_of_samples(experiment):
        yield (
            f"trainers take the steps of {stream.stream_name!r}: give the evaluation a stream of "
            "its own"
        )


def unused_evaluations(experiment: NamedExperiment) -> Iterator[str]:
    """Yield managers whose stream has no episodes, and those whose tag no agent asks for.

    The experiment has no other mistake.
    """
    for number, manager in enumerate(experiment.config.eval_managers):
        stream = manager.eval_sample_stream.stream_name
        if stream not in {name for name, _ in evaluating(experiment)}:
            yield (
                f"eval_managers: {number}: eval_sample_stream: no actor with is_evaluation: true "
                f"has an agent whose episodes go to the stream {stream!r}"
            )
        if manager.tag not in _asked_for(manager.policy_name, experiment):
            yield (
                f"eval_managers: {number}: tag: no policy worker and no inline stream of the "
                f"policy {manager.policy_name!r} has policy_identifier: {manager.tag}, so that "
                "the version with this tag is not played"
            )


def _is_same(manager: EvalManager, other: EvalManager) -> bool:
    return (manager.policy_name, manager.tag) == (other.policy_name, other.tag)


def evaluating(experiment: NamedExperiment) -> set[tuple[str, str | None]]:
    """Return the streams that episodes of evaluations go to, each with the policy that plays."""
    return {
        (name, acting_policy(actor, spec, experiment))
        for actor in experiment.config.actors
        if actor.is_evaluation
        for spec in actor.agent_specs
        for name in sample_streams_of(actor, spec)
    }


def _asked_for(policy_name: str, experiment: NamedExperiment) -> list[object]:
    """Return the identifiers by which versions of a policy are played."""
    workers = [
        each.policy_identifier
        for each in experiment.config.policies
        if each.policy_name == policy_name
    ]
    inline = [
        stream.policy_identifier
        for actor in experiment.config.actors
        for stream in actor.inference_streams
        if stream.policy_name == policy_name
    ]
    return [*workers, *inline]
