"""The keys of DA3C's section in the YAML file."""

from pydantic import PositiveInt, model_validator

from relaax.learning.actor_critic import ActorCriticSettings
from relaax.learning.preprocessor import ActionMask


class Settings(ActorCriticSettings):
    """The keys of the YAML's ``algorithm:`` section; seed 003, section "Distributed A3C"."""

    #: Number of discrete actions.
    action_size: PositiveInt
    #: The observation that says which actions are allowed; its shape is ``[action_size]``.
    action_mask: str | None = None

    @model_validator(mode="after")
    def _masks_the_actions(self) -> "Settings":
        if self.action_mask is None:
            return self
        if not isinstance(self.state_size, dict):
            raise ValueError(
                "action_mask names one of several observations; give names to the others, too: "
                f"state_size: {{NAME: {list(self.state_size)}}}"
            )
        shape = self.state_size.get(self.action_mask, (self.action_size,))
        if shape != (self.action_size,):
            raise ValueError(
                f"state_size: {self.action_mask}: an action mask has a number for each action, "
                f"[{self.action_size}], is {list(shape)}"
            )
        return self

    @property
    def mask(self) -> ActionMask | None:
        """The observation that says which actions are allowed, if there is one."""
        return None if self.action_mask is None else ActionMask(self.action_mask, self.action_size)
