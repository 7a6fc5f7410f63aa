"""What does not fit together in an experiment, in sentences that name it."""

from collections.abc import Iterator

from relaax.configuration.actor_agents import AgentSamples
from relaax.experiments.curriculum_checks import mistakes_of_curricula
from relaax.experiments.eval_checks import mistakes_of_evaluations, unused_evaluations
from relaax.experiments.league_checks import mistakes_of_opponents
from relaax.experiments.policies import section_of
from relaax.experiments.population_checks import mistakes_of_populations, unused_populations
from relaax.experiments.stream_checks import buffers_of, mistakes_of_streams, unused_streams
from relaax.experiments.version_checks import mistakes_of_versions
from relaax.experiments.workers import ActorWorker, AgentSpec, InferenceStream, SampleStream
from relaax.experiments.written import KINDS, NamedExperiment

_INLINE = InferenceStream.Type.INLINE
_IN_TURN = SampleStream.Type.NAME_ROUND_ROBIN


def mistakes(experiment: NamedExperiment) -> list[str]:
    """Return a sentence for each mistake."""
    found = [*_counts(experiment), *_actors(experiment), *mistakes_of_streams(experiment)]
    found += [*mistakes_of_versions(experiment), *mistakes_of_evaluations(experiment)]
    found += [*mistakes_of_curricula(experiment), *mistakes_of_populations(experiment)]
    found += mistakes_of_opponents(experiment)
    found += [*_keys(experiment), *_gpus(experiment), *_paced(experiment)]
    # A stream whose name is wrong at one end has no user at the other: this is said once.
    unused = unused_streams, unused_evaluations, unused_populations
    return found or [mistake for check in unused for mistake in check(experiment)]


def _counts(experiment: NamedExperiment) -> Iterator[str]:
    for kind in KINDS:
        configured = len(getattr(experiment.config, kind))
        scheduled = len(experiment.scheduling.of_each(kind))
        if configured != scheduled:
            yield (
                f"{configured} {kind} are configured, and {scheduled} are scheduled: see {kind} of "
                "ExperimentScheduling"
            )


def _gpus(experiment: NamedExperiment) -> Iterator[str]:
    for kind, worker in (
        ("buffers", "a buffer worker"),
        ("eval_managers", "an evaluation manager"),
        ("population_manager", "a population's manager"),
    ):
        if any(each.gpu for each in experiment.scheduling.of_each(kind)):
            yield f"scheduling: {kind}: gpu: no effect: {worker} computes nothing"


def _paced(experiment: NamedExperiment) -> Iterator[str]:
    """Yield what does not fit with ``max_staleness``: one trainer counts rollouts as they begin."""
    trainers = experiment.config.trainers
    for number, trainer in enumerate(trainers):
        if section_of(experiment, trainer).get("max_staleness") is None:
            continue
        place, stream = f"trainers: {number}: trainer: max_staleness", trainer.sample_stream
        if buffers_of(experiment, stream.stream_name):
            yield f"{place}: the trainer counts rollouts itself: leave its buffer workers out"
        if sum(each.policy_name == trainer.policy_name for each in trainers) > 1:
            yield f"{place}: the policy {trainer.policy_name!r} must have one trainer"
        for actor in experiment.config.actors:
            for spec in actor.agent_specs:
                names = [each.stream_name for each in actor.samples_of(spec)]
                is_late = spec.sends_episodes or spec.sample_steps is not None
                if is_late and stream.stream_name in names:
                    yield (
                        f"{place}: steps must come as they are made: leave sample_steps, "
                        "send_after_done, send_full_trajectory and send_concise_info out"
                    )
                    return


def _keys(experiment: NamedExperiment) -> Iterator[str]:
    workers = [
        (f"{kind}: {number}", worker.worker_info)
        for kind in KINDS
        for number, worker in enumerate(getattr(experiment.config, kind))
    ]
    hosted = {info.host_key for _, info in workers if info.host_key is not None}
    said: set[str] = set()
    for place, info in workers:
        for key in info.watch_keys:
            if key not in hosted | said:
                said.add(key)
                there = ", ".join(sorted(hosted)) or "no keys"
                yield (
                    f"{place}: worker_info: watch_keys: no worker has the host_key {key!r}; "
                    f"there are: {there}"
                )


def _actors(experiment: NamedExperiment) -> Iterator[str]:
    said: set[str] = set()
    for number, actor in enumerate(experiment.config.actors):
        lengths = _lengths(actor, experiment)
        for mistake in (*_specs(actor), *lengths):
            if mistake not in said:
                yield f"actors: {number}: {mistake}"
            said.add(mistake)


def _specs(actor: ActorWorker) -> Iterator[str]:
    for number, spec in enumerate(actor.agent_specs):
        for key, indices, count in (
            ("inference_stream_idx", [spec.inference_stream_idx], len(actor.inference_streams)),
            ("sample_stream_idx", spec.sample_streams, len(actor.sample_streams)),
        ):
            kind = key.removesuffix("_stream_idx")
            for index in indices:
                if index >= count:
                    yield (
                        f"agent_specs: {number}: {key}: {index} is no place in {kind}_streams, "
                        f"which has {count} (the first is 0)"
                    )
        if len(spec.sample_streams) > 1 and any(
            stream.type_ is _IN_TURN for stream in actor.samples_of(spec)
        ):
            yield (
                f"agent_specs: {number}: sample_stream_idx: a stream NAME_ROUND_ROBIN gives each "
                "step to one trainer, and several streams give it to each: name it alone"
            )
        yield from (f"agent_specs: {number}: {mistake}" for mistake in _samples(actor, spec))
        yield from (f"agent_specs: {number}: {mistake}" for mistake in _team(actor, number))
    if not actor.agent_specs:
        yield "agent_specs: is empty, so that no agent has a policy"


def _samples(actor: ActorWorker, spec: AgentSpec) -> Iterator[str]:
    """Yield what does not fit between a specification, its streams and its worker."""
    if spec.pad_trajectory and actor.max_num_steps is None:
        yield "pad_trajectory: needs max_num_steps of the actor worker"
    types = {stream.type_ for stream in actor.samples_of(spec)}
    if types == {SampleStream.Type.NULL} and not actor.is_evaluation:
        for key in AgentSamples.model_fields:
            if key in spec.model_fields_set:
                yield f"{key}: no effect with a sample stream of the type NULL"
    inference = actor.inference_of(spec)
    if spec.require_one_version and inference is not None:
        why = _versions_change(actor, inference)
        if why is not None:
            yield f"require_one_version: {why}"


def _team(actor: ActorWorker, number: int) -> Iterator[str]:
    """Yield why the episodes of a specification's agents cannot be sent together."""
    spec, others = actor.agent_specs[number], actor.agent_specs[:number]
    for stream in actor.samples_of(spec):
        if stream.type_ is not SampleStream.Type.NAME_MULTI_AGENT:
            continue
        if not (spec.send_full_trajectory or spec.send_concise_info):
            yield (
                f"the stream {stream.stream_name!r} is NAME_MULTI_AGENT, which sends the episodes "
                "of an environment's agents together: write send_full_trajectory: true, or "
                "send_concise_info: true"
            )
        if any(stream in actor.samples_of(other) for other in others):
            yield (
                f"sample_stream_idx: agents of another specification have the NAME_MULTI_AGENT "
                f"stream {stream.stream_name!r}: let one index_regex match all of them"
            )


def _lengths(actor: ActorWorker, experiment: NamedExperiment) -> Iterator[str]:
    """Yield which samples are not what the trainers of their stream draw."""
    for number, spec in enumerate(actor.agent_specs):
        wanted, key = spec.sample_steps, "sample_steps"
        if spec.pad_trajectory and actor.max_num_steps is not None:
            wanted, key = actor.max_num_steps + spec.bootstrap_steps, "pad_trajectory"
        if wanted is None:
            continue
        names = {stream.stream_name for stream in actor.samples_of(spec)}
        for trainer in experiment.config.trainers:
            drawn_of = trainer.sample_stream.stream_name
            taken = {each.takes.stream_name for each in buffers_of(experiment, drawn_of)}
            if names.isdisjoint({drawn_of} | taken):
                continue
            drawn = section_of(experiment, trainer).get("episode_len")
            if drawn != wanted and (drawn is not None or spec.pad_trajectory):
                there = "its args have none" if drawn is None else f"it is {drawn}"
                yield (
                    f"agent_specs: {number}: {key}: samples have {wanted} rows, and the trainer of "
                    f"{trainer.policy_name!r} needs the same episode_len; {there}"
                )


def _versions_change(actor: ActorWorker, stream: InferenceStream) -> str | None:
    """Return why trajectories may have steps of several versions, if so: "Version Control"."""
    if stream.type_ is not _INLINE:
        return f"policy workers of {stream.stream_name!r} pull at any time: make it INLINE"
    if stream.pull_interval_seconds is not None:
        return "pull_interval_seconds pulls in the middle of a trajectory: make it None"
    if actor.ring_size > 1:
        return (
            f"ring_size is {actor.ring_size}, and the policy is pulled when any of these "
            "environments is reset: make it 1"
        )
    return None
