"""The configuration of an actor-critic, as the servers want it."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base import Section
from relaax.algorithm_base.config_base import SWITCHED, require_effect
from relaax.learning.filters import Filters, FilterSettings
from relaax.learning.intrinsic import IntrinsicNetworks
from relaax.learning.method_config import MethodConfig
from relaax.learning.networks import Head, Network
from relaax.learning.on_policy.continuous import Actions
from relaax.learning.on_policy.networks import VALUE, layers_of, network_of
from relaax.learning.on_policy.policy_settings import PolicySettings, RolloutSettings
from relaax.learning.previous import previous_size
from relaax.learning.rollouts import LOG_PROBABILITY
from relaax.learning.shapes import stacked_shape
from relaax.spaces import Space

_VALUE_OF_STATE = Head(VALUE, 1)


class VTraceSection(Section):
    """Correction for policy lag; Espeholt et al. 2018, equation (1)."""

    #: The paper's rho-bar: which policy is evaluated.
    clip_rho: PositiveFloat = 1.0
    #: The paper's c-bar: how far a correction reaches back.
    clip_c: PositiveFloat = 1.0


class ActorCriticSettings(PolicySettings):
    """The keys of the YAML's ``algorithm:`` section that do not depend on the kind of actions.

    Derive an algorithm's settings from it: they add its actions, and may give other
    defaults. ``passes`` above 1 ask for ``policy_clip`` or ``vtrace``.
    """

    #: Learn with V-trace from rollouts of older parameters; None takes them as they are.
    vtrace: Annotated[VTraceSection | None, SWITCHED] = None
    #: Rollouts that one update is made of, at most.
    rollouts_per_update: PositiveInt = 32
    #: Rollouts that one update is made of, at least: full rollouts wait for others.
    least_rollouts_per_update: PositiveInt = 1
    #: Whether acting waits for learning where many environments share a learner: ``always``, until
    #: the rollouts that have become full are learnt from; ``if_behind``, while a whole update is
    #: queued; ``never``, where the oldest rollouts are dropped instead.
    wait_for_learning: Literal["always", "if_behind", "never"] = "if_behind"
    #: Learn; without it the parameters are served as they are.
    learn: bool = True

    @model_validator(mode="after")
    def _corrects_once(self) -> "ActorCriticSettings":
        if self.policy_clip is not None and self.vtrace is not None:
            raise ValueError("policy_clip and vtrace exclude each other")
        if self.passes > 1 and self.policy_clip is None and self.vtrace is None:
            raise ValueError(
                "passes above 1 need policy_clip (0.2, for example) or vtrace: true, since the "
                "first pass already changes the policy that chose the actions"
            )
        return self

    @model_validator(mode="after")
    def _learns_where_it_says(self) -> "ActorCriticSettings":
        if self.learner == "process":
            keys = ("least_rollouts_per_update", "wait_for_learning", "learn")
            require_effect(self, keys, "learner: worker")
        return self

    @model_validator(mode="after")
    def _gathers_what_fits(self) -> "ActorCriticSettings":
        least, most = self.least_rollouts_per_update, self.rollouts_per_update
        if least > most and self.wait_for_learning != "always":
            raise ValueError(
                f"least_rollouts_per_update {least} is above rollouts_per_update {most}; this is "
                "possible only with wait_for_learning: always"
            )
        return self

    @model_validator(mode="after")
    def _learns_before_its_end(self) -> "ActorCriticSettings":
        if self.learn and self._update_steps > self.max_global_step:
            raise ValueError(
                f"{self._update} are more steps than max_global_step, {self.max_global_step:g}: "
                "the training would end before it learns"
            )
        return self

    @model_validator(mode="after")
    def _divides_what_there_is(self) -> "ActorCriticSettings":
        most = max(self.least_rollouts_per_update, self.rollouts_per_update)
        if self.minibatches > most:
            raise ValueError(
                f"minibatches: an update has at most {most} rollouts (rollouts_per_update), which "
                f"are not divided into {self.minibatches}"
            )
        return self

    def doubts(self) -> Iterator[str]:
        """Yield warnings: sentences about values that are allowed, and hardly meant."""
        yield from super().doubts()
        if self.learn and self._update_steps > self.max_global_step / 10:
            yield (
                f"{self._update} are more than a tenth of max_global_step, "
                f"{self.max_global_step:,.0f}: it learns fewer than ten times"
            )

    @property
    def _least_rollouts(self) -> int:
        """Rollouts of an update at least: where acting waits, those that are full are enough."""
        if self.learner == "process":
            return self.rollouts_per_update
        return 1 if self.wait_for_learning == "always" else self.least_rollouts_per_update

    @property
    def rollouts_of_batch(self) -> int:
        """Rollouts that a learner in a process draws together."""
        return self.rollouts_per_update

    @property
    def _update_steps(self) -> int:
        return self._least_rollouts * self.episode_len

    @property
    def _update(self) -> str:
        if self._least_rollouts == 1:
            return f"episode_len: the {self.episode_len} steps of one rollout"
        key = "rollouts_per_update" if self.learner == "process" else "least_rollouts_per_update"
        return f"{key}: {self._least_rollouts} rollouts of episode_len, {self.episode_len},"


class PolicyConfig(MethodConfig):
    """The typed settings of a policy and a critic, checked once, and their parts.

    ``algorithm`` is its name in checkpoints. ``critic`` is the head beside the policy: one value of
    a state, or other outputs.
    """

    settings: RolloutSettings
    #: Numbers recorded of each choice, for the learner; see ``Columns.of``.
    extras: tuple[str, ...] = (LOG_PROBABILITY,)

    def __init__(
        self,
        config: Mapping[str, Any],
        algorithm: str,
        settings: RolloutSettings,
        actions: Actions,
        critic: Head = _VALUE_OF_STATE,
    ) -> None:
        super().__init__(config)
        self.settings = settings
        self.actions = self.distribution = actions.distribution
        self.network = self.network_below((actions.head, critic))
        if not self.network.lstm_size:
            require_effect(settings, ("burn_in",), "a recurrent layer")
        self.intrinsic: IntrinsicNetworks | None = None
        if settings.intrinsic is not None:
            shapes = stacked_shape(settings.own_inputs, settings.history_len)
            self.intrinsic = IntrinsicNetworks(settings.intrinsic, shapes, actions.distribution)
        self._algorithm = algorithm
        self._actions = actions
        self.action_units = actions.units

    def network_below(self, heads: tuple[Head, ...]) -> Network:
        """Return the network of policy and critic: override it for further heads or layers."""
        return network_of(self.settings, heads, previous_size(self.distribution))

    def fingerprint(self) -> dict[str, Any]:
        """Return the properties that a checkpoint must agree on, as JSON values."""
        return {
            "algorithm": self._algorithm,
            "action_size": self._actions.size,
            **self._actions.fingerprint,
            **self.units(),
            **layers_of(self.network),
            **self.filters().fingerprint(),
            **({} if self.intrinsic is None else self.intrinsic.fingerprint()),
        }

    def filters(self) -> Filters:
        """Return new filters of states and rewards, as the keys say if there are any."""
        settings = self.settings
        others = {} if self.intrinsic is None else self.intrinsic.statistics
        if not isinstance(settings, FilterSettings):
            return Filters(others=others)
        return settings.filters_of(settings.inputs, others)

    def action_space(self) -> Space:
        """Return the space of actions."""
        return self._actions.space

    def has_learner(self) -> bool:
        """Return whether a process of its own learns, and no worker."""
        return self.settings.learner == "process"

    def rollout_steps(self) -> int:
        """Return the length of a rollout that a worker keeps."""
        return self.settings.episode_len if self.learns() and not self.has_learner() else 1


class ActorCriticConfig(PolicyConfig):
    """The same for an algorithm whose workers learn."""

    settings: ActorCriticSettings

    def learns(self) -> bool:
        """Return whether workers learn."""
        return self.settings.learn
