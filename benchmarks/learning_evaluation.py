"""What RELAAX has learnt, without actions that are drawn."""

import importlib
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from learning_cases import Case

from relaax.client.gymnasium_actions import action_decoder
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.networks.parameters import Parameters
from relaax.learning.parameter_server import PARAMETERS
from relaax.server.common.algorithm_loader import load_algorithm, make_config
from relaax.server.common.checkpoint_place import saver_of
from relaax.server.common.configuration.load import AlgorithmSection
from relaax.server.common.saver import DirectoryStore

#: Added to a training's seed for that of its evaluation.
EVALUATION_SEED = 10_000

#: Returns the action for a state.
Policy: TypeAlias = Callable[[Any], Any]


def evaluated(
    section: dict[str, Any], checkpoints: Path, case: Case, seed: int, episodes: int
) -> float | None:
    """Return the mean return of ``episodes`` of the last checkpoint; None for no episodes."""
    if episodes == 0:
        return None
    module, _, _ = case.env_id.rpartition(":")
    if module:
        importlib.import_module(module)  # registers the environment
    policy = policy_of(section, checkpoints)
    environment = gymnasium.make(case.env_id, **case.env_kwargs)
    seeds = [seed + EVALUATION_SEED, *[None] * (episodes - 1)]
    found = statistics.fmean(episode_return(environment, policy, each) for each in seeds)
    environment.close()
    return found


def episode_return(environment: gymnasium.Env[Any, Any], policy: Policy, seed: int | None) -> float:
    """Play an episode and return the sum of its rewards."""
    decode = action_decoder(environment.action_space)
    state, _ = environment.reset(seed=seed)
    total, is_over = 0.0, False
    while not is_over:
        state, reward, terminated, truncated, _ = environment.step(decode(policy(state)))
        total += float(reward)
        is_over = terminated or truncated
    return total


def policy_of(section: dict[str, Any], checkpoints: Path) -> Policy:
    """Return the policy that the parameter server has saved last, in numpy, without noise.

    It is that of an ``OffPolicyConfig``, of dense layers.
    """
    parameters = {key: value for key, value in section.items() if key != "path"}
    directory = Path(section["path"])
    config: Any = make_config(
        load_algorithm(directory), AlgorithmSection(directory, parameters, directory)
    )
    checkpoint = saver_of(DirectoryStore(checkpoints), 1).restore_latest()
    if checkpoint is None:
        raise RuntimeError("the parameter server has saved nothing")
    chosen = NumpyPolicy(config.network, config.actions, is_recorded=False, heads=config.heads)
    arrays = config.network.manifest.unpack(checkpoint.tensors[PARAMETERS])
    noise = 0 * config.actions.noise(np.random.default_rng(), 1)

    def act(state: Any) -> Any:
        observations = np.asarray(state, np.float32)[np.newaxis]
        no_state = np.zeros((2, 1, 0), np.float32)
        choice = chosen.choose(Parameters(arrays, ()), observations, no_state, noise)
        return choice.actions.item() if choice.actions.ndim == 1 else choice.actions[0]

    return act
