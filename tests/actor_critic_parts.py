"""Parts of an actor-critic that tests ask its builder for."""


def gradients_of(algorithm, config):
    """What computes its gradients."""
    from relaax.learning.networks.parameters_tf import ParameterTensors

    return algorithm.Builder(config).method(ParameterTensors(config.network))
