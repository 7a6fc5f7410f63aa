"""What does not fit together about self-play and leagues: learners, opponents and weights."""

from collections.abc import Collection, Iterator

from relaax.configuration.population_rules import League, SelfPlay, Weighting
from relaax.experiments.draw_checks import drawn_by
from relaax.experiments.eval_checks import mistakes_of_evaluated_stream
from relaax.experiments.population import exploited_of, streams_of
from relaax.experiments.stream_checks import (
    acting_policy,
    each_once,
    policies_of_samples,
    sample_streams_of,
)
from relaax.experiments.version_checks import acting_identifier
from relaax.experiments.workers import (
    ActorWorker,
    AgentSpec,
    InferenceStream,
    PopulationManager,
    SampleStream,
)
from relaax.experiments.written import NamedExperiment
from relaax.processes.identifiers import LATEST

_INLINE = InferenceStream.Type.INLINE


def mistakes_of_learners(
    rule: League, manager: PopulationManager, experiment: NamedExperiment
) -> Iterator[str]:
    """Yield mistakes in ``learners``, and what has no effect on their games."""
    place = "population_algorithm: args: learners"
    drawn = drawn_by(manager, experiment)
    for name, each in rule.learners.items():
        if name not in manager.population:  # as is said of the members
            continue
        stream = SampleStream(type_=SampleStream.Type.NAME, stream_name=each.stream)
        for mistake in mistakes_of_evaluated_stream(stream, experiment):
            yield f"{place}: {name}: stream: {mistake}"
        yield from _unused_weighting(f"{place}: {name}", each, f"md.pfsp_{name}", drawn)


def mistakes_of_self_play(
    rule: SelfPlay, manager: PopulationManager, experiment: NamedExperiment
) -> Iterator[str]:
    """Yield arguments of weights by which nobody draws versions."""
    drawn = drawn_by(manager, experiment)
    yield from _unused_weighting("population_algorithm: args", rule, "md.pfsp", drawn)


def _unused_weighting(
    place: str, rule: Weighting, field: str, drawn: Collection[str]
) -> Iterator[str]:
    if field not in drawn:
        for key in sorted(Weighting.model_fields.keys() & rule.model_fields_set):
            yield (
                f"{place}: {key}: no effect: no inline stream has a policy_identifier that draws "
                f"versions by {field}"
            )


def mistakes_of_opponents(experiment: NamedExperiment) -> list[str]:
    """Return why agents cannot report to a population as its past versions."""
    return each_once(experiment, _opponents)


def reporting(experiment: NamedExperiment) -> Iterator[tuple[str, str | None]]:
    """Yield the streams of populations that past versions report to, each with its policy."""
    reported = _learners(experiment)
    for actor in experiment.config.actors:
        for spec in actor.agent_specs:
            for name in sample_streams_of(actor, spec):
                if not actor.is_evaluation and name in reported:
                    yield name, acting_policy(actor, spec, experiment)


def unused_learners(
    manager: PopulationManager, played: Collection[tuple[str, str | None]]
) -> Iterator[str]:
    """Yield learners of a league whose games nobody reports.

    played: the streams that episodes are reported to, each with the policy that plays.
    """
    exploited = exploited_of(manager)
    for stream, learner in streams_of(manager).items():
        place = f"population_algorithm: args: learners: {learner}"
        if stream not in {name for name, _ in played}:
            yield (
                f"{place}: stream: no actor has an agent whose episodes go to the stream {stream!r}"
            )
        elif learner in exploited and (stream, exploited[learner]) not in played:
            yield (
                f"{place}: exploits: no actor has an agent of the policy {exploited[learner]!r} "
                f"whose episodes go to the stream {stream!r}"
            )


def _opponents(actor: ActorWorker, experiment: NamedExperiment) -> Iterator[str]:
    if actor.is_evaluation:
        return
    taken, learners = policies_of_samples(experiment), _learners(experiment)
    for number, spec in enumerate(actor.agent_specs):
        names = sample_streams_of(actor, spec)
        streams = [name for name in names if name in learners]
        inference = actor.inference_of(spec)
        if not streams or inference is None:
            continue
        place = f"agent_specs: {number}"
        if any(name in taken for name in names):
            yield (
                f"{place}: sample_stream_idx: episodes of {streams[0]!r} are evaluated, and steps "
                "of others are learnt from: an agent does one of both"
            )
        for stream in streams:
            for mistake in _games(actor, spec, stream, experiment):
                yield f"{place}: {mistake}"


def _games(
    actor: ActorWorker, spec: AgentSpec, stream: str, experiment: NamedExperiment
) -> Iterator[str]:
    """Yield why games of a stream would not count."""
    (learner, manager), inference = _learners(experiment)[stream], actor.inference_of(spec)
    acts = acting_policy(actor, spec, experiment)
    if inference is None:
        return
    is_inline = inference.type_ is _INLINE
    if learner is None:
        yield (
            f"episodes of {stream!r} are evaluated ones of the population's own policies: give the "
            "actor worker is_evaluation=True"
        )
    elif acts is not None and acts not in manager.population:
        yield (
            f"the policy {acts!r} chooses the actions, and is no member of the population whose "
            f"games go to {stream!r}"
        )
    elif not any(
        other is not spec and _is_newest(actor, other, learner, experiment)
        for other in actor.agent_specs
    ):
        yield (
            f"the games of the stream {stream!r} are those of {learner!r}, and no agent of this "
            "worker acts by its newest version"
        )
    elif is_inline and acts == learner:
        if inference.policy_identifier == LATEST or actor.ring_size > 1:
            yield (
                f"an agent whose episodes go to {stream!r} acts by a past version: give its inline "
                "stream a policy_identifier, and the worker ring_size: 1"
            )
    elif (
        acts is not None
        and acts == exploited_of(manager).get(learner)
        and not _is_newest(actor, spec, acts, experiment)
    ):
        yield (
            f"the policy {learner!r} exploits {acts!r}, and plays against its newest version: give "
            "the inline stream, or its policy workers, policy_identifier: latest"
        )
    elif not is_inline and (acts == learner or acting_identifier(inference, experiment) != LATEST):
        yield (
            f"an agent whose episodes go to {stream!r} acts by a past version, and its policy "
            "workers may choose by several versions in one game: give it an inline stream"
        )
    elif is_inline and actor.ring_size > 1:
        yield (
            f"an agent whose episodes go to {stream!r} acts by one version in each game: give the "
            "worker ring_size: 1"
        )


def _is_newest(
    actor: ActorWorker, spec: AgentSpec, policy: str, experiment: NamedExperiment
) -> bool:
    """Return whether agents act by the newest version of a policy."""
    inference = actor.inference_of(spec)
    if inference is None or acting_policy(actor, spec, experiment) != policy:
        return False
    return acting_identifier(inference, experiment) == LATEST


def _learners(experiment: NamedExperiment) -> dict[str, tuple[str | None, PopulationManager]]:
    """Return the streams of all populations, each with its learner and the manager."""
    return {
        stream: (learner, manager)
        for manager in experiment.config.population_manager
        for stream, learner in streams_of(manager).items()
    }
