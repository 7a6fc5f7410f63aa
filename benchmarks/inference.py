"""How long DA3C's networks take to choose an action, and what calling them costs.

    python benchmarks/inference.py
    python benchmarks/inference.py --batches 1 64 --calls 100

Microseconds a call, the best of several rounds, for batches of several sizes. ``act`` is what
agents call: numpy for dense networks, a traced TensorFlow graph for others. ``tf.function`` is the
same network as a TensorFlow graph that is called in the usual way, compiled with XLA where it has
no convolutions. ``copy`` is a memory copy of the parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from launch import REPOSITORY
from processes import end_on_sigterm
from report import Results, add_json, parser_of
from timing import best_us

from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.distributions import Categorical
from relaax.learning.networks import Network, initial_parameters
from relaax.learning.rollouts import Columns

DA3C = REPOSITORY / "algorithms" / "da3c"

SHAPES: dict[str, dict[str, Any]] = {
    "CartPole (4-64-64)": {"action_size": 2, "state_size": [4]},
    "CartPole, LSTM 64": {"action_size": 2, "state_size": [4], "lstm": True, "lstm_size": 64},
    "Atari (84x84x4)": {"action_size": 18, "state_size": [84, 84], "history_len": 4},
}


@dataclass(frozen=True)
class Row:
    """One line of the table; microseconds a call."""

    network: str
    batch: int
    act_us: float
    tf_function_us: float
    copy_us: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32], metavar="N",
                        help="environments at once (default 1 8 32)")  # fmt: skip
    parser.add_argument("--calls", type=int, default=500, help="calls in a round (default 500)")
    add_json(parser, "inference")
    arguments = parser.parse_args()
    end_on_sigterm()
    results = Results(arguments.json)
    algorithm = load_algorithm(DA3C)
    algorithm.prepare_to_fork()  # imports TensorFlow, and keeps its log quiet
    print(f"{'network':<22}{'batch':>6}{'act':>9}{'tf.function':>13}{'copy':>8}   us a call")
    for name, section in SHAPES.items():
        config: Any = algorithm.Config(section)
        for batch in arguments.batches:
            calls = cases(config.network, section["action_size"], batch)
            row = Row(name, batch, *(best_us(call, arguments.calls) for call in calls))
            print(
                f"{name:<22}{batch:>6}{row.act_us:>9.0f}{row.tf_function_us:>13.0f}"
                f"{row.copy_us:>8.1f}",
                flush=True,
            )
            results.add(row)
    results.close()


def cases(network: Network, action_size: int, batch: int) -> list[Callable[[], Any]]:
    """Return the calls to be compared."""
    # Imported here: TensorFlow is imported by main, which keeps its log quiet.
    import tensorflow as tf

    from relaax.learning.distributions.categorical_tf import GraphCategorical
    from relaax.learning.networks.parameters_tf import ParameterTensors
    from relaax.learning.networks.policy_tf import GraphPolicy, policy_of

    distribution, graph_distribution = Categorical(action_size), GraphCategorical()
    tensors = ParameterTensors(network)
    vector = initial_parameters(network.manifest, "uniform", seed=1)
    parameters = tensors.unpack(vector)
    is_image = network.has_convolutions
    observations = Columns.of(network, distribution).observations(batch)
    state = np.zeros((2, batch, network.lstm_size), np.float32)
    noise = np.zeros((batch, action_size), np.float32)
    policy = policy_of(network, tensors, distribution, graph_distribution)
    graph = GraphPolicy(network, tensors, graph_distribution).chosen
    plain = tf.function(graph, jit_compile=not is_image, autograph=False)

    def call_plain() -> Any:
        return plain(parameters.tensors, observations, state, noise)[0].numpy()

    return [partial(policy.choose, parameters, observations, state, noise), call_plain, vector.copy]


if __name__ == "__main__":
    main()
