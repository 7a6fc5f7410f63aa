"""The keys that describe discrete actions in the YAML file."""

from pydantic import model_validator

from relaax.learning.action_mask import ActionMask
from relaax.learning.distributions import Distribution, distribution_of
from relaax.learning.on_policy.continuous import Actions
from relaax.learning.on_policy.policy_settings import RolloutSettings
from relaax.learning.shapes import CountOrSizes
from relaax.spaces import Space, discrete


class DiscreteSettings(RolloutSettings):
    """Actions that are described by ``action_size`` or by ``action_bits``."""

    #: Number of discrete actions; or a list: of several choices at once, the actions of each.
    action_size: CountOrSizes | None = None
    #: How many bits an action has, or their shape.
    action_bits: CountOrSizes | None = None
    #: The observation that says which actions are allowed; its shape is ``[n]``, with a number for
    #: each action, for the actions of all choices one behind the other, or for each bit.
    action_mask: str | None = None

    @model_validator(mode="after")
    def _describes_actions_once(self) -> "DiscreteSettings":
        if self.action_size is None and self.action_bits is None:
            raise ValueError("action_size (how many actions there are) or action_bits is missing")
        if self.action_size is not None and self.action_bits is not None:
            raise ValueError("action_size and action_bits exclude each other")
        for key in ("action_size", "action_bits"):
            if getattr(self, key) == ():
                raise ValueError(f"{key}: must not be an empty list")
        return self

    @model_validator(mode="after")
    def _masks_the_actions(self) -> "DiscreteSettings":
        if self.mask is not None:
            self.mask.require(self.state_size, "bit" if self.action_size is None else "action")
        return self

    @property
    def action_space(self) -> Space:
        """The space of actions."""
        if isinstance(self.action_size, int):
            return discrete(self.action_size)
        if self.action_size is not None:
            return {"type": "MultiDiscrete", "nvec": list(self.action_size)}
        return {"type": "MultiBinary", "shape": self.bits_shape}

    @property
    def bits_shape(self) -> list[int]:
        """The shape of an action's bits; [] where it has none."""
        bits = self.action_bits or ()
        return [bits] if isinstance(bits, int) else list(bits)

    @property
    def distribution(self) -> Distribution:
        """How actions are drawn."""
        return distribution_of(self.action_space)

    @property
    def mask(self) -> ActionMask | None:
        """The observation that says which actions are allowed, if there is one."""
        if self.action_mask is None:
            return None
        return ActionMask(
            self.action_mask,
            self.distribution.outputs,
            nvec=self.action_size if isinstance(self.action_size, tuple) else (),
            may_forbid_all=self.action_size is None,  # of bits, none may be set
        )

    @property
    def actions(self) -> Actions:
        """The description of actions for the rest of the algorithm."""
        size, bits = self.action_size, self.bits_shape
        return Actions(
            distribution=self.distribution,
            space=self.action_space,
            size=size if isinstance(size, int) else list(size or ()),
            fingerprint={"action_bits": bits} if bits else {},
        )
