"""The keys of DA3C's section in the YAML file."""

from pydantic import model_validator

from relaax.learning.actor_critic import ActorCriticSettings
from relaax.learning.distributions import Distribution, distribution_of
from relaax.learning.preprocessor import ActionMask
from relaax.learning.shapes import ActionSize
from relaax.spaces import Space, discrete


class Settings(ActorCriticSettings):
    """The keys of the YAML's ``algorithm:`` section; seed 003, section "Distributed A3C".

    Actions are described by ``action_size`` or by ``action_bits``.
    """

    #: Number of discrete actions; or a list: of several choices at once, the actions of each.
    action_size: ActionSize | None = None
    #: How many bits an action has, or their shape.
    action_bits: ActionSize | None = None
    #: The observation that says which actions are allowed; its shape is ``[actions]``, of several
    #: choices the actions of all of them together.
    action_mask: str | None = None

    @model_validator(mode="after")
    def _describes_actions_once(self) -> "Settings":
        if (self.action_size is None) == (self.action_bits is None):
            raise ValueError(
                "give action_size (how many actions there are, or a list for several choices at "
                "once), or action_bits (how many bits an action has), and not both"
            )
        if () in (self.action_size, self.action_bits):
            raise ValueError("an action says something: the list of numbers is empty")
        return self

    @model_validator(mode="after")
    def _masks_the_actions(self) -> "Settings":
        if self.action_mask is None:
            return self
        if not isinstance(self.state_size, dict):
            raise ValueError(
                "action_mask names one of several observations; give names to the others, too: "
                f"state_size: {{NAME: {list(self.state_size)}}}"
            )
        actions = self.distribution.outputs
        shape = self.state_size.get(self.action_mask, (actions,))
        if shape != (actions,):
            raise ValueError(
                f"state_size: {self.action_mask}: an action mask has a number for each action, "
                f"[{actions}], is {list(shape)}"
            )
        return self

    @property
    def action_space(self) -> Space:
        """The space of actions."""
        match self.action_size, self.action_bits:
            case int(actions), _:
                return discrete(actions)
            case tuple(choices), _:
                return {"type": "MultiDiscrete", "nvec": list(choices)}
            case _, int(bits):
                return {"type": "MultiBinary", "shape": [bits]}
            case _, shape:
                return {"type": "MultiBinary", "shape": list(shape or ())}

    @property
    def distribution(self) -> Distribution:
        """How actions are drawn."""
        return distribution_of(self.action_space)

    @property
    def mask(self) -> ActionMask | None:
        """The observation that says which actions are allowed, if there is one."""
        if self.action_mask is None:
            return None
        return ActionMask(self.action_mask, self.distribution.outputs)
