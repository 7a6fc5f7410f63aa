"""The keys of DA3C's section in the YAML file."""

from relaax.learning.on_policy import ActorCriticSettings, DiscreteSettings


class Settings(DiscreteSettings, ActorCriticSettings):
    """The keys of the YAML's ``algorithm:`` section; seed 003, section "Distributed A3C"."""
