"""TRPO: trust region policy optimization (Schulman et al. 2015, https://arxiv.org/abs/1502.05477).

``settings``    the YAML's ``algorithm:`` section, typed
``config``      the same as the servers want it, with the network and the distribution of actions
``method_tf``   the method: advantages, natural gradient, line search
``penalty_tf``  another step of the policy: PPO with L-BFGS
``values_tf``   how values are fitted to returns
``lbfgs_tf``    L-BFGS
``slopes_tf``   gradients of functions of all parameters
``builder``     wires these and the parts of ``relaax.learning``
"""

from relaax.assembly import Assembly, prepare_to_fork

from .builder import TrpoBuilder as Builder
from .config import Config

ParameterServer, Agent, make_batch_agent, make_learner, replay_spec = Assembly(Builder)

__all__ = [
    "Agent", "Builder", "Config", "ParameterServer", "make_batch_agent", "make_learner",
    "prepare_to_fork", "replay_spec"
]  # fmt: skip
