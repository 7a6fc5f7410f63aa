"""The section of an algorithm that a trainer and its policy describe."""

from collections.abc import Mapping
from typing import Any

from relaax.configuration.population_rules import merged
from relaax.errors import ConfigurationError, did_you_mean_one_of
from relaax.experiments.workers import Policy, TrainerWorker
from relaax.experiments.written import NamedExperiment

#: The type whose ``args`` are all keys.
SECTION = "section"

#: SRL's names of keys of the section.
_RENAMED = {"action_space": "action_size"}

#: Types that are there without being registered.
POLICY_TYPES: Mapping[str, Mapping[str, Any]] = {
    SECTION: {},
    "atari_naive_rnn": {
        "state_size": [84, 84],
        "network": [
            {"conv2d": {"filters": 16, "kernel": 8, "stride": 4}},
            {"conv2d": {"filters": 32, "kernel": 4, "stride": 2}},
            {"dense": 256},
            {"lstm": 256},
        ],
    },
}


def section_of(experiment: NamedExperiment, trainer: TrainerWorker) -> dict[str, Any]:
    """Return the section ``algorithm`` of a policy; ConfigurationError for an unknown type."""
    keys = keys_of(experiment, trainer.policy)
    return {"name": trainer.trainer.type_, **keys, **args_of(experiment, trainer)}


def args_of(experiment: NamedExperiment, trainer: TrainerWorker) -> dict[str, Any]:
    """Return the args of a trainer, with the hyperparameters that its population begins with."""
    args = trainer.trainer.args
    for manager in experiment.config.population_manager:
        args = merged(args, manager.initial_hyperparams.get(trainer.policy_name, {}))
    return args


def keys_of(experiment: NamedExperiment, policy: Policy) -> dict[str, Any]:
    """Return the keys that describe a policy's network."""
    types = {**POLICY_TYPES, **experiment.policy_types}
    if policy.type_ not in types:
        raise ConfigurationError(
            f"no policy has the type {policy.type_!r}; there are {', '.join(types)}"
            + did_you_mean_one_of(policy.type_, list(types))
        )
    args = {_RENAMED.get(key, key): value for key, value in policy.args.items()}
    return {**types[policy.type_], **args}
