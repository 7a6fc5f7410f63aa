"""The keys of IMPALA's section in the YAML file."""

from typing import Annotated, Literal

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base.config_base import SWITCHED
from relaax.learning.on_policy import ActorCriticSettings, DiscreteSettings, VTraceSection


class Settings(DiscreteSettings, ActorCriticSettings):
    """The keys of DA3C's section, with the defaults of Espeholt et al. 2018, table G.1."""

    learner: Literal["worker", "process"] = "process"
    vtrace: Annotated[VTraceSection | None, SWITCHED] = VTraceSection()
    episode_len: PositiveInt = 20
    initial_learning_rate: PositiveFloat = 6e-4
    #: Acting goes on while a batch is learnt from.
    max_policy_lag: NonNegativeInt = 1

    @model_validator(mode="after")
    def _is_impala(self) -> "Settings":
        if self.learner == "worker" or self.vtrace is None:
            raise ValueError(
                "IMPALA learns in a process of its own, with V-trace: for learner: worker or "
                "vtrace: false write name: da3c"
            )
        return self
