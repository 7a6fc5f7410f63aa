"""Makes a package's exports of an algorithm's builder, wired once for all of them.

``exports``     the names that a package exports; algorithms that come with RELAAX, to build on
``parts``       the builder of an algorithm, and the parts that it returns
``agents``      the actor of a worker, with its learner if it learns
``placing``     places a learner: in a worker, or in a process of its own
``on_policy``   builders of algorithms that learn from rollouts of the newest policies
``off_policy``  builders of algorithms that learn from stored transitions
``population``  builders of algorithms that score candidates by whole episodes
"""

from relaax.assembly.agents import prepare_to_fork
from relaax.assembly.exports import Assembly, bundled
from relaax.assembly.off_policy import OffPolicyBuilder
from relaax.assembly.on_policy import OnPolicyBuilder
from relaax.assembly.parts import (
    ExperienceParts,
    MethodBuilder,
    ParameterParts,
    PolicyParts,
    WorkerParts,
)
from relaax.assembly.population import PopulationBuilder

__all__ = [
    "Assembly", "ExperienceParts", "MethodBuilder", "OffPolicyBuilder", "OnPolicyBuilder",
    "ParameterParts", "PolicyParts", "PopulationBuilder", "WorkerParts", "bundled",
    "prepare_to_fork"
]  # fmt: skip
