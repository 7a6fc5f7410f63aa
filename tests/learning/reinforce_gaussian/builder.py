"""Wires the parts."""

import numpy as np

from relaax.acting.actor import Actor
from relaax.acting.agent import SingleAgent
from relaax.acting.preprocessor import Preprocessor
from relaax.learning.networks import initial_parameters
from relaax.learning.networks.numpy_policy import NumpyPolicy
from relaax.learning.on_policy.learner import OnPolicyLearner
from relaax.learning.placements import Driver, InWorker, OnThread
from relaax.learning.policy import CurrentPolicy
from relaax.learning.rollouts import Columns, RolloutStore
from relaax.parameters.optimizers import RMSProp, RMSPropSettings
from relaax.parameters.parameter_server import ParameterServer, ParameterService
from relaax.parameters.parameter_store import ParameterStore
from relaax.telemetry.interval_metrics import IntervalMetrics


def make_parameter_server(config, saver, metrics):
    initial = initial_parameters(config.network.manifest, "orthogonal", config.keys.seed)
    optimizer = RMSProp(initial.size, RMSPropSettings(epsilon=1e-3))
    store = ParameterStore(initial, optimizer, lambda global_t: config.keys.learning_rate)
    service, fingerprint = ParameterService(store, metrics), {"algorithm": "REINFORCE"}
    return ParameterServer(store, service, saver, fingerprint, max_global_step=float("inf"))


def make_batch_agent(config, bridge, seed, learns_in_background):
    from relaax.learning.distributions.graph_tf import graph_of
    from relaax.learning.gradients_tf import RolloutGradients
    from relaax.learning.networks.parameters_tf import ParameterTensors

    from .loss_tf import Reinforce

    network, distribution, keys = config.network, config.distribution, config.keys
    columns, tensors = Columns.of(network, distribution, np.float32), ParameterTensors(network)
    loss = Reinforce(graph_of(distribution), keys.discount)
    method = RolloutGradients(network, tensors, loss, keys.episode_len, columns, most_at_once=32)
    policy = CurrentPolicy(tensors.unpack, bridge.pull())
    metrics = bridge.metrics()
    learner = OnPolicyLearner(method, policy, gradient_norm_clipping=1.0)
    driver = Driver(learner, bridge, bridge, IntervalMetrics(metrics))
    experience = InWorker(driver)
    if learns_in_background:
        experience = OnThread(driver, metrics, rollouts_per_update=32)
    return Actor(
        preprocessor=Preprocessor((keys.state_size,), history_len=1),
        policy=policy,
        model=NumpyPolicy(network, distribution),
        distribution=distribution,
        columns=columns,
        rollouts=RolloutStore(keys.episode_len, columns),
        experience=experience,
        random=np.random.default_rng([keys.seed, seed]),
    )


def make_agent(config, bridge, seed):
    actor = make_batch_agent(config, bridge, seed, learns_in_background=False)
    return SingleAgent(actor, bridge.metrics())
