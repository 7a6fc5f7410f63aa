"""Wires the actor of a worker, whatever the algorithm is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from relaax.acting.actor import Actor
from relaax.acting.evaluator import EvaluationParts
from relaax.acting.executed_actions import ExecutedActions
from relaax.acting.policies import (
    NamedPolicies,
    PoliciesByName,
    PolicySource,
    PulledPolicies,
    VariantPolicies,
)
from relaax.acting.preprocessor import Preprocessor
from relaax.acting.pulling import PullingSink
from relaax.acting.recording import Recorder
from relaax.acting.remote import LocalInference, RemoteModel, forms_of
from relaax.algorithm_base import ExperienceSink, FloatVector, NullExperience, ParameterLink
from relaax.algorithm_base.inference import Inference
from relaax.algorithm_base.roles import Admission
from relaax.assembly.parts import ExperienceParts, MethodBuilder, PolicyParts, WorkerParts
from relaax.assembly.placing import in_worker
from relaax.errors import ConfigurationError
from relaax.learning.exploration.noise import NoNoise, UniformAtFirst
from relaax.learning.filters import FilteringModel, Filters
from relaax.learning.model import PolicyModel
from relaax.learning.networks import NetworkParameters
from relaax.learning.policy import ActingPolicy, CurrentPolicy, PolicyUse
from relaax.learning.previous import PreviousStep
from relaax.learning.rollouts import RolloutStore
from relaax.learning.steps import EpisodeRecorder, StepRecorder
from relaax.learning.team import TEAM, TeamView, team_shape
from relaax.parameters.published import published_source

#: Makes parameters of a flat vector.
Unpack: TypeAlias = Callable[[FloatVector], NetworkParameters]


def prepare_to_fork() -> None:
    """Import TensorFlow and modules that need it, for workers to share; nothing is started."""
    from relaax.learning.tensorflow_runtime_tf import import_tensorflow

    import_tensorflow()
    from relaax.learning import gradients_tf, losses_tf, returns_tf  # noqa: F401
    from relaax.learning.distributions import graph_tf  # noqa: F401
    from relaax.learning.networks import policy_tf  # noqa: F401


def make_actor(
    builder: MethodBuilder[Any],
    parameter_server: ParameterLink,
    seed: int,
    learns_in_background: bool,
    experience: ExperienceSink[Any] | None,
    inference: Inference | None = None,
    answers: bool = False,
    deterministic: bool = False,
) -> Actor[Any]:
    """Return the agent of many environments.

    It learns by itself, or delivers steps to ``experience``, and pulls the values that a learner in
    a process of its own publishes. Where it learns it filters states before they are recorded; else
    they are recorded as they came, and the learner gathers the statistics. With ``inference``
    another process has the policies: this one needs neither TensorFlow nor parameters. With
    ``answers`` it chooses for other processes, and has the machine to itself. A ``deterministic``
    one chooses without noise. ConfigurationError where the algorithm allows none of these.
    """
    parts, recording = builder.policy(seed), builder.experience()
    worker, filters = recording.worker, parts.filters
    if inference is None:
        acting = _own_policies(parts, recording, parameter_server, learns_in_background, answers)
    else:
        acting = _policies_of(inference, parts, recording)
    model, policy, source = acting.model, acting.policy, acting.source
    random = np.random.default_rng(None if parts.seed is None else [parts.seed, seed])
    if deterministic and parts.perturbed is not None:
        raise ConfigurationError("deterministic actions: this policy explores by its parameters")
    if parts.random_steps is not None and not deterministic:
        model = UniformAtFirst(model, parts.random_steps, lambda: policy.global_t, random)
    sink: ExperienceSink[Any] = NullExperience()
    rollouts: Recorder[Any] | None = None
    if worker is None:
        sink = _delivering(recording, acting, parameter_server, experience)
        rollouts = _recorder(recording, filters, experience)
    elif worker.learns and isinstance(policy, CurrentPolicy):
        sink = in_worker(
            builder, worker, policy, source, parameter_server, random, learns_in_background, filters
        )
        rollouts = RolloutStore(worker.rollout_len, recording.columns)
    make_noise, metrics = parts.make_noise, parameter_server.metrics()
    exploration = None if make_noise is None else make_noise(policy, random)
    if deterministic:
        exploration = NoNoise(parts.actions)
    return Actor(
        preprocessor=_preprocessor(parts, filters if worker is not None else None),
        policy=policy,
        model=model,
        distribution=parts.actions,
        columns=recording.columns,
        rollouts=rollouts,
        experience=sink,
        random=random,
        reward_scale=1.0 if recording.is_filtered_late else parts.reward_scale,
        clip_rewards=parts.clips_rewards and not recording.is_filtered_late,
        reward_filter=None if worker is None else filters.rewards,
        units=parts.units,
        previous=PreviousStep.of(parts.network, parts.actions),
        executed=ExecutedActions(parts.space, parts.units, metrics),
        exploration=exploration,
        evaluation=EvaluationParts(
            source=None if source is None else parameter_server,
            unpack=acting.unpack,
            make_preprocessor=lambda still: _preprocessor(parts, still),
            filters=filters,
            model=acting.clean,
            make_noise=None if make_noise is None else lambda other: make_noise(policy, other),
        ),
        places=parts.places,
        policies=_named(parts, acting),
        stamp=None if parts.imprint is None else parts.imprint.stamp,
        remote=acting.remote,
        team=TeamView.of(parts.inputs, parts.team),
        admission=_admission(recording, experience),
    )


@dataclass(frozen=True)
class _ActingPolicies:
    """The policies of an actor, and the models that evaluate them."""

    policy: ActingPolicy
    #: Chooses in training, and without noise on its parameters.
    model: PolicyModel
    clean: PolicyModel
    #: Makes parameters of a whole vector, without noise.
    unpack: Unpack
    #: All of them by name.
    named: PoliciesByName
    #: Where their values come from; None where another process has them.
    source: Any = None
    #: Chooses for other processes, or lets others choose.
    remote: LocalInference | RemoteModel | None = None


def _own_policies(
    parts: PolicyParts,
    recording: ExperienceParts,
    parameter_server: ParameterLink,
    learns_in_background: bool,
    answers: bool,
) -> _ActingPolicies:
    """Return policies of this process, whose parameters come from the parameter server."""
    if answers:
        require_remote(parts, recording)
    prepare_to_fork()
    from relaax.learning.networks.parameters_tf import ParameterTensors

    worker, filters = recording.worker, parts.filters
    _configure(parts, worker, learns_in_background, answers)
    tensors, size = ParameterTensors(parts.network, parts.gpu), parts.network.manifest.size
    source = _source(filters, recording, parameter_server)
    clean = _model_of(parts, recording, tensors)
    model, unpack = _exploring(clean, tensors.unpack, parts, is_filtered=worker is not None)

    def own_of(vector: FloatVector) -> NetworkParameters:
        return unpack(vector[:size])

    def parameters_of(vector: FloatVector) -> NetworkParameters:
        if parts.imprint is not None:
            parts.imprint.require(vector)
        if worker is None:  # the statistics are published behind the parameters
            filters.use(filters.separated(vector)[1])
        return own_of(vector)

    policy = CurrentPolicy(parameters_of, source.pull())
    named = _by_name(parts, recording, policy, own_of, parameter_server)
    remote = None
    if answers:
        forms = forms_of(recording.columns, parts.actions)
        remote = LocalInference(model, named, forms, lambda: policy.global_t)
    return _ActingPolicies(
        policy, model, clean, lambda values: tensors.unpack(values[:size]), named, source, remote
    )


def _policies_of(
    inference: Inference, parts: PolicyParts, recording: ExperienceParts
) -> _ActingPolicies:
    """Return policies that other processes have."""
    require_remote(parts, recording)
    model = RemoteModel(inference, forms_of(recording.columns, parts.actions))
    return _ActingPolicies(
        model, model, model, lambda values: model.current.parameters, model, remote=model
    )


def require_remote(parts: PolicyParts, recording: ExperienceParts) -> None:
    """Raise ConfigurationError where no other process can choose for a worker."""
    why_not = ""
    if recording.worker is not None:
        why_not = "workers that learn need the parameters: give the algorithm 'learner: process'"
    elif parts.perturbed is not None:
        why_not = "noise on parameters differs from worker to worker"
    elif parts.variant_of is not None or parts.imprint is not None:
        why_not = "each episode has parameters of its own, which are made of a publication's"
    elif parts.pins_episodes:
        why_not = "each episode is played with one version, and an inference server has the newest"
    elif recording.is_paced:
        why_not = "max_staleness admits rollouts by the version of the worker's own parameters"
    if why_not:
        raise ConfigurationError(f"inference servers cannot choose here: {why_not}")


def _configure(
    parts: PolicyParts, worker: WorkerParts | None, learns_in_background: bool, answers: bool
) -> None:
    from relaax.learning.tensorflow_runtime_tf import configure_tensorflow

    configure_tensorflow(
        parts.gpu,
        has_the_machine=answers or (worker is not None and learns_in_background),
        splits_operations=answers or (worker is not None and worker.waits == "always"),
    )


def _source(filters: Filters, recording: ExperienceParts, parameter_server: ParameterLink) -> Any:
    """Return where values come from, and where gradients go if the worker learns."""
    if recording.worker is not None:
        return filters.bridged(parameter_server)
    counts_steps = recording.is_on_policy and recording.is_published
    return published_source(parameter_server) if counts_steps else parameter_server


def _exploring(
    model: PolicyModel, unpack: Unpack, parts: PolicyParts, is_filtered: bool
) -> tuple[PolicyModel, Unpack]:
    """Return what chooses actions, by filtered states and with noise on its parameters."""
    if parts.filters.states and not is_filtered:
        model = FilteringModel(model, parts.filters.states)
    if parts.perturbed is None:
        return model, unpack
    noisy = parts.perturbed(unpack, model)
    return noisy, noisy.unpack


def _by_name(
    parts: PolicyParts,
    recording: ExperienceParts,
    policy: CurrentPolicy,
    own_of: Unpack,
    parameter_server: ParameterLink,
) -> PoliciesByName:
    """Return all policies; all of them are filtered by the statistics of the default one."""
    if parts.variant_of is not None:
        return VariantPolicies(policy, parts.variant_of, own_of)
    return PulledPolicies(
        policy,
        partial(PolicySource, parameter_server),
        own_of,
        recording.pull_interval_s,
        parts.pins_episodes,
    )


def _named(parts: PolicyParts, acting: _ActingPolicies) -> NamedPolicies | None:
    """Return the policies that episodes are played with; None where there is one."""
    if parts.policy_of is None:
        return None
    return NamedPolicies(parts.policy_of, acting.named, parts.places)


def _model_of(parts: PolicyParts, recording: ExperienceParts, tensors: Any) -> PolicyModel:
    recorded = recording.columns.of_policy if recording.is_recorded else ()
    if parts.model is not None:
        return parts.model(tensors, recorded)
    from relaax.learning.distributions.graph_tf import graph_head_of
    from relaax.learning.networks.policy_tf import policy_of

    return policy_of(
        parts.network,
        tensors,
        parts.actions,
        graph_head_of(parts.actions),
        recorded,
        action_mask=None if parts.mask is None else parts.mask.name,
        heads=parts.heads,
    )


def _preprocessor(parts: PolicyParts, filters: Filters | None) -> Preprocessor:
    """Return the preprocessor; without ``filters`` states are filtered later."""
    return Preprocessor(
        parts.inputs,
        parts.history_len,
        parts.mask,
        {} if filters is None else filters.states,
        parts.filters.states if filters is None else (),
        {} if parts.team.size == 1 else {TEAM: team_shape(parts.inputs, parts.team)},
    )


def _delivering(
    recording: ExperienceParts,
    acting: _ActingPolicies,
    parameter_server: ParameterLink,
    experience: ExperienceSink[Any] | None,
) -> ExperienceSink[Any]:
    """Return the sink of steps for a learner in a process of its own.

    Meanwhile the parameters are pulled, unless another process has them.
    """
    if experience is None:
        raise ValueError("this algorithm learns in a process of its own: experience is missing")
    source, policy = acting.source, acting.policy
    if source is None or not isinstance(policy, CurrentPolicy):
        return experience
    use, interval_s = PolicyUse(parameter_server.metrics()), recording.pull_interval_s
    return PullingSink(experience, source, policy, interval_s, use)


def _admission(recording: ExperienceParts, experience: object) -> Admission | None:
    """Return what admits rollouts; None where they are begun at any time, or nothing is learnt.

    ConfigurationError where steps are held back before they are sent.
    """
    if not recording.is_paced or isinstance(experience, NullExperience):
        return None
    if not isinstance(experience, Admission):
        raise ConfigurationError(
            "max_staleness: rollouts are admitted as their steps come, and here these are held "
            "back: leave out sample_steps, send_full_trajectory and their like, and "
            "require_one_version"
        )
    return experience


def _recorder(recording: ExperienceParts, filters: Filters, experience: object) -> Recorder[Any]:
    """Return the recorder of steps, or of whole episodes, for such a learner."""
    if recording.episodes is not None:
        return EpisodeRecorder(recording.stored, recording.episodes.longest, filters)
    return StepRecorder(recording.stored, is_on_policy=recording.is_on_policy, sink=experience)
