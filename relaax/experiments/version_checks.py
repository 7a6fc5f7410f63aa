"""What does not fit together about versions of policies: their databases and identifiers."""

from collections.abc import Iterator

from relaax.configuration.option_kinds import identifier_text
from relaax.experiments.stream_checks import each_once, policies_of_samples, sample_streams_of
from relaax.experiments.workers import ActorWorker, InferenceStream, ParameterDB, PolicyWorker
from relaax.experiments.written import NamedExperiment
from relaax.processes.identifiers import LATEST


def mistakes_of_versions(experiment: NamedExperiment) -> list[str]:
    """Return a sentence for each mistake."""
    of_steps = each_once(experiment, _learnt_from)
    return [*_types(experiment), *_queries(experiment), *_shared(experiment), *of_steps]


def acting_identifier(stream: InferenceStream, experiment: NamedExperiment) -> str:
    """Return the identifier of the version that chooses: the stream's, or its policy workers'."""
    if stream.type_ is InferenceStream.Type.INLINE:
        return identifier_text(stream.policy_identifier)
    served = {
        worker.inference_stream.stream_name: identifier_text(worker.policy_identifier)
        for worker in experiment.config.policies
    }
    return served.get(stream.stream_name, LATEST)


def pulling(experiment: NamedExperiment) -> Iterator[tuple[str, InferenceStream | PolicyWorker]]:
    """Yield all that pull a version, each with its place; of actors that are alike, one."""
    for number, worker in enumerate(experiment.config.policies):
        yield f"policies: {number}", worker
    seen: list[InferenceStream] = []
    for number, actor in enumerate(experiment.config.actors):
        for place, stream in enumerate(actor.inference_streams):
            if stream.type_ is InferenceStream.Type.INLINE and stream not in seen:
                seen.append(stream)
                yield f"actors: {number}: inference_streams: {place}", stream


def _types(experiment: NamedExperiment) -> Iterator[str]:
    """Yield databases that differ from the first trainer's."""
    trainers = experiment.config.trainers
    users = [
        (f"trainers: {number}", trainer.parameter_db) for number, trainer in enumerate(trainers)
    ]
    users += [(place, user.parameter_db) for place, user in pulling(experiment)]
    for place, database in users:
        if trainers and database != trainers[0].parameter_db:
            yield (
                f"{place}: parameter_db: is {_named(database)}, and that of the first trainer is "
                f"{_named(trainers[0].parameter_db)}: give all workers the same"
            )


def _named(database: ParameterDB) -> str:
    """Return a database in words, without its URL, which may have a password."""
    words = [f"Type.{database.type_.name}"]
    if database.database_mongodb is not None:
        words.append("with a MongoDB")
    if database.database_expire_days is not None:
        words.append(f"of {database.database_expire_days:g} days")
    return " ".join(words)


def _queries(experiment: NamedExperiment) -> Iterator[str]:
    """Yield queries of databases that have no metadata."""
    for place, user in pulling(experiment):
        is_query = isinstance(user.policy_identifier, dict | list)
        if is_query and user.parameter_db.type_ is ParameterDB.Type.FILESYSTEM:
            yield (
                f"{place}: policy_identifier: a query needs metadata: give all workers "
                "parameter_db: {type_: METADATA}"
            )


def _shared(experiment: NamedExperiment) -> Iterator[str]:
    """Yield policy workers of one stream that choose by different versions."""
    first: dict[str, PolicyWorker] = {}
    for number, worker in enumerate(experiment.config.policies):
        before = first.setdefault(worker.inference_stream.stream_name, worker)
        if worker.policy_identifier != before.policy_identifier:
            yield (
                f"policies: {number}: policy_identifier: another worker of the stream "
                f"{worker.inference_stream.stream_name!r} has {before.policy_identifier!r}"
            )


def _learnt_from(actor: ActorWorker, experiment: NamedExperiment) -> Iterator[str]:
    """Yield agents whose steps are of another version than the one that is learnt."""
    taken = policies_of_samples(experiment)
    for number, spec in enumerate(actor.agent_specs):
        stream = actor.inference_of(spec)
        if stream is None:
            continue
        identifier = acting_identifier(stream, experiment)
        learnt = [name for name in sample_streams_of(actor, spec) if name in taken]
        if identifier != LATEST and learnt:
            yield (
                f"agent_specs: {number}: the version {identifier} chooses the actions, and the "
                f"trainers of the sample stream {learnt[0]!r} would learn from its steps as from "
                "those of the newest version: give the agent a sample stream of the type NULL"
            )
