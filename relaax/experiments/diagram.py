"""An experiment as a drawing in Mermaid: workers, policies, and the streams between them."""

import re
from collections.abc import Iterator
from itertools import groupby

from relaax.experiments.population import streams_of
from relaax.experiments.stream_checks import buffers_of
from relaax.experiments.workers import ActorWorker, AgentSpec, InferenceStream, SampleStream
from relaax.experiments.written import NamedExperiment

#: Kinds of nodes.
_PARAMETERS, _TRAINERS, _BUFFERS, _SERVERS = "parameters", "trainers", "buffers", "servers"
_EVALUATIONS, _POPULATIONS = "evaluations", "population"


def mermaid(experiment: NamedExperiment) -> str:
    """Return the text of a flow chart: what goes along each arrow is written at it."""
    lines = [*_policies(experiment), *_servers(experiment), *_evaluations(experiment)]
    lines += [*_populations(experiment), *_actors(experiment)]
    return "\n".join(["flowchart LR", *(f"    {line}" for line in dict.fromkeys(lines))]) + "\n"


def _policies(experiment: NamedExperiment) -> Iterator[str]:
    """Yield each policy, with its trainers and their buffers."""
    everyone = experiment.config.trainers
    for name in dict.fromkeys(each.policy_name for each in everyone):
        trainers = [each for each in everyone if each.policy_name == name]
        stream = trainers[0].sample_stream.stream_name
        learning = _id(_TRAINERS, name)
        yield f"{_id(_PARAMETERS, name)}[({_text(f'policy {name}')})]"
        yield _node(learning, len(trainers), "trainer", f" of {name}: {trainers[0].trainer.type_}")
        yield _arrow(learning, "parameters", _id(_PARAMETERS, name))
        if buffers := buffers_of(experiment, stream):
            yield _node(_id(_BUFFERS, name), len(buffers), "buffer", f" of {name}")
            yield _arrow(_id(_BUFFERS, name), f"samples: {stream}", learning)


def _evaluations(experiment: NamedExperiment) -> Iterator[str]:
    """Yield the evaluation managers, each with the policy whose versions it evaluates."""
    for manager in experiment.config.eval_managers:
        name = _id(_EVALUATIONS, f"{manager.policy_name}/{manager.tag}")
        yield _node(name, 1, "evaluation manager", f" of {manager.policy_name}")
        yield _arrow(name, f"tag {manager.tag}", _id(_PARAMETERS, manager.policy_name))


def _populations(experiment: NamedExperiment) -> Iterator[str]:
    """Yield the managers of populations, each with the policies that it changes."""
    for number, manager in enumerate(experiment.config.population_manager):
        kind = f" of a population: {manager.population_algorithm.type_}"
        yield _node(_id(_POPULATIONS, str(number)), 1, "manager", kind)
        for name in manager.population:
            yield _arrow(_id(_POPULATIONS, str(number)), "orders", _id(_PARAMETERS, name))


def _servers(experiment: NamedExperiment) -> Iterator[str]:
    """Yield the policy workers of each inference stream."""
    workers = experiment.config.policies
    for stream in dict.fromkeys(each.inference_stream.stream_name for each in workers):
        own = [each for each in workers if each.inference_stream.stream_name == stream]
        policy = own[0].policy_name
        yield _node(_id(_SERVERS, stream), len(own), "policy worker", f" of {policy}")
        yield _arrow(_id(_PARAMETERS, policy), "parameters", _id(_SERVERS, stream))


def _actors(experiment: NamedExperiment) -> Iterator[str]:
    """Yield the groups of actors that are alike, and the ways of their agents."""
    for number, (actor, alike) in enumerate(groupby(experiment.config.actors)):
        name = f"actors{number}"
        yield _node(name, len(list(alike)), "actor", f": {actor.env.type_}")
        for spec in actor.agent_specs:
            yield _choosing(name, actor, spec)
            for stream in actor.samples_of(spec):
                yield from _learning(name, spec, stream, experiment)


def _choosing(name: str, actor: ActorWorker, spec: AgentSpec) -> str:
    """Return the way of agents to the policy that acts for them."""
    stream = actor.inference_streams[spec.inference_stream_idx]
    if stream.type_ is InferenceStream.Type.NAME:
        asked = f"observations of {spec.index_regex}: {stream.stream_name}"
        return _arrow(name, asked, _id(_SERVERS, stream.stream_name), "<-->")
    seconds = stream.pull_interval_seconds
    when = "at resets" if seconds is None else f"every {seconds:g} s"
    policy = _id(_PARAMETERS, str(stream.policy_name))
    return _arrow(policy, f"parameters for {spec.index_regex}, {when}", name)


def _learning(
    name: str, spec: AgentSpec, stream: SampleStream, experiment: NamedExperiment
) -> Iterator[str]:
    """Yield the ways of agents' steps to those that take them."""
    if stream.type_ is SampleStream.Type.NULL:
        return
    kind = "" if stream.type_ is SampleStream.Type.NAME else f" ({stream.type_.name})"
    for manager in experiment.config.eval_managers:
        if manager.eval_sample_stream.stream_name == stream.stream_name:
            taker = _id(_EVALUATIONS, f"{manager.policy_name}/{manager.tag}")
            yield _arrow(name, f"episodes of {spec.index_regex}: {stream.stream_name}", taker)
    for number, population in enumerate(experiment.config.population_manager):
        if stream.stream_name in streams_of(population):
            taker = _id(_POPULATIONS, str(number))
            yield _arrow(name, f"episodes of {spec.index_regex}: {stream.stream_name}", taker)
    for trainer in experiment.config.trainers:
        own = trainer.sample_stream.stream_name
        buffers = buffers_of(experiment, own)
        taken = [each.takes.stream_name for each in buffers] or [own]
        if stream.stream_name in taken:
            taker = _id(_BUFFERS if buffers else _TRAINERS, trainer.policy_name)
            yield _arrow(name, f"steps of {spec.index_regex}: {stream.stream_name}{kind}", taker)


def _node(node: str, count: int, kind: str, more: str = "") -> str:
    """Return a box of so many workers of a ``kind``."""
    return f"{node}[{_text((f'{count} {kind}s' if count > 1 else kind) + more)}]"


def _arrow(begin: str, label: str, end: str, arrow: str = "-->") -> str:
    return f"{begin} {arrow}|{_text(label)}| {end}"


def _id(kind: str, name: str) -> str:
    """Return the identifier of a node: another one for each name."""
    return f"{kind}_" + re.sub("[^0-9A-Za-z]", lambda found: f"_{ord(found[0]):x}_", name)


def _text(label: str) -> str:
    """Return a label in quotes, whatever its characters are."""
    return '"' + re.sub('[#"<>&]', lambda found: f"#{ord(found[0])};", label) + '"'
