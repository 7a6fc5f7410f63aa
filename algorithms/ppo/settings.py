"""The keys of PPO's section in the YAML file."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base.config_base import LISTED, require_effect
from relaax.learning.filters import FilterSettings
from relaax.learning.on_policy import ContinuousSettings, DiscreteSettings, PolicySettings
from relaax.parameters.optimizers import OptimizerSections
from relaax.parameters.schedule import Schedule

#: Lowest and highest.
Range: TypeAlias = Annotated[tuple[PositiveFloat, PositiveFloat], LISTED]


class PpoSettings(PolicySettings, FilterSettings):
    """The keys of the ``algorithm:`` section that do not depend on the kind of actions."""

    #: Whether an action is an array of numbers.
    continuous: bool = False

    learner: Literal["worker", "process"] = "process"
    #: Steps of one rollout.
    episode_len: PositiveInt = 128
    #: Rollouts that are learnt from together.
    rollouts_per_batch: PositiveInt = 8
    passes: PositiveInt = 10
    #: Into how many updates the steps of each pass are divided at random; with a recurrent layer
    #: its rollouts are.
    minibatches: PositiveInt = 8
    initialization: Literal["uniform", "orthogonal"] = "orthogonal"
    initial_learning_rate: PositiveFloat = 3e-4
    entropy_beta: float = Field(0.0, ge=0)
    trace_decay: float = Field(0.95, ge=0, le=1)
    #: Give the advantages of each batch mean 0 and standard deviation 1.
    normalize_advantages: bool = True

    #: Whether a batch is kept from moving the policy too far by ``policy_clip``, or by a penalty.
    objective: Literal["clip", "kl_penalty"] = "clip"
    policy_clip: float | None = Field(0.2, gt=0, lt=1)
    #: Clip around the policy before the first pass, and weigh each step by that policy against the
    #: one that acted, at most by so much; None: clip around the policy that acted.
    decoupled: PositiveFloat | None = None
    #: The clip stays within these, and follows ``kl_target``; None leaves it as it is.
    policy_clip_range: Range | None = None
    #: The KL divergence that one batch should move the policy by, in nats.
    kl_target: PositiveFloat = 0.015
    #: Weight of the KL divergence with ``objective: kl_penalty``, at first; it follows
    #: ``kl_target``.
    kl_penalty: PositiveFloat = 1.0
    #: That weight stays within these.
    kl_penalty_range: Range = (1 / 35, 35.0)
    #: Weight of the squared excess over twice ``kl_target``.
    kl_cutoff: float = Field(250.0, ge=0)
    #: No more updates are made of a batch that has moved the policy farther than this; None: all.
    kl_stop: PositiveFloat | None = None
    #: How far one batch may move a value away from what it was; None: as far as the loss asks.
    value_clip: PositiveFloat | None = None
    #: Learn values with mean 0 and standard deviation 1 over all returns so far.
    normalize_values: bool = False
    #: From this error on the value loss grows in proportion to it (Huber 1964), and not to its
    #: square; None: nowhere. With ``normalize_values`` errors are those of normalised values.
    huber_delta: PositiveFloat | None = None
    #: ``linear``: to zero at ``max_global_step``; ``constant``; ``kl``: follows ``kl_target``.
    learning_rate_schedule: Literal["linear", "constant", "kl"] = "linear"
    #: With ``kl`` the rate stays within these.
    learning_rate_range: Range = (1e-5, 1e-2)

    @model_validator(mode="before")
    @classmethod
    def _adam_by_default(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or set(OptimizerSections.model_fields) & set(values):
            return values
        return {**values, "Adam": {"epsilon": 1e-5, "gradient_norm_clipping": 0.5}}

    @model_validator(mode="before")
    @classmethod
    def _has_one_bound(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and "wait_for_learning" in values:
            waits = values["wait_for_learning"]
            raise ValueError(
                "wait_for_learning: no key of PPO; write max_policy_lag: "
                f"{0 if waits in (True, 'always') else 1}, the batches that acting may be ahead"
            )
        if isinstance(values, Mapping) and values.get("max_policy_lag", 0) is None:
            raise ValueError(
                "max_policy_lag: null is not known any more: no rollout is dropped now, however "
                "old it is; write how many batches acting may be ahead, such as max_policy_lag: 1"
            )
        return values

    @model_validator(mode="after")
    def _has_a_clip(self) -> "PpoSettings":
        if self.objective == "clip" and self.policy_clip is None:
            raise ValueError("policy_clip is missing; objective: kl_penalty does without one")
        return self

    @model_validator(mode="after")
    def _restrains_as_it_says(self) -> "PpoSettings":
        has_rate = self.learning_rate_schedule == "kl"
        if not has_rate:
            require_effect(self, ("learning_rate_range",), "learning_rate_schedule: kl")
        if self.objective == "kl_penalty":
            require_effect(self, ("policy_clip", "policy_clip_range"), "objective: clip")
            return self
        penalty = "objective: kl_penalty"
        require_effect(self, ("kl_penalty", "kl_penalty_range", "kl_cutoff"), penalty)
        if self.policy_clip_range is None and not has_rate:
            followers = f"policy_clip_range, learning_rate_schedule: kl or {penalty}"
            require_effect(self, ("kl_target",), followers)
        return self

    @model_validator(mode="after")
    def _ranges_are_ordered(self) -> "PpoSettings":
        for key in ("policy_clip_range", "kl_penalty_range", "learning_rate_range"):
            low, high = getattr(self, key) or (0, 1)
            if low >= high:
                raise ValueError(f"{key}: {low:g} must lie below {high:g}")
        return self

    @model_validator(mode="after")
    def _adapts_where_it_can(self) -> "PpoSettings":
        if self.learning_rate_schedule == "kl":
            for key, is_given in (
                ("learner: worker", self.learner == "worker"),
                ("learners", self.learners is not None),
            ):
                if is_given:
                    raise ValueError(
                        f"learning_rate_schedule: kl needs one learner in a process: with {key} "
                        "the parameter server has the learning rate, which gradients do not move"
                    )
        return self

    @model_validator(mode="after")
    def _normalizes_where_it_can(self) -> "PpoSettings":
        if self.normalize_values and (self.learner == "worker" or self.learners is not None):
            key = "learner: worker" if self.learner == "worker" else "learners"
            raise ValueError(
                f"normalize_values needs one learner in a process: with {key} each of several "
                "would have a scale of its own"
            )
        return self

    @model_validator(mode="after")
    def _learns_before_its_end(self) -> "PpoSettings":
        if self.batch_steps > self.max_global_step:
            raise ValueError(
                f"rollouts_per_batch: {self.rollouts_per_batch} rollouts of episode_len, "
                f"{self.episode_len}, are more steps than max_global_step, "
                f"{self.max_global_step:g}: the training would end before it learns"
            )
        return self

    @model_validator(mode="after")
    def _divides_what_there_is(self) -> "PpoSettings":
        if self.minibatches > self.batch_steps:
            raise ValueError(
                f"minibatches: a batch has {self.batch_steps} steps, which are not divided into "
                f"{self.minibatches}"
            )
        return self

    def doubts(self) -> Iterator[str]:
        """Yield warnings: sentences about values that are allowed, and hardly meant."""
        yield from super().doubts()
        if self.batch_steps > self.max_global_step / 10:
            yield (
                f"rollouts_per_batch: {self.rollouts_per_batch} rollouts of episode_len, "
                f"{self.episode_len}, are more than a tenth of max_global_step, "
                f"{self.max_global_step:,.0f}: it learns fewer than ten times"
            )
        yield from self._doubts_of_ranges()
        if self.kl_stop is not None and self.kl_stop < self.kl_target and self._follows_target:
            yield (
                f"kl_stop: {self.kl_stop:g} lies below kl_target, {self.kl_target:g}: batches are "
                "given up before they move the policy as far as they should"
            )

    def _doubts_of_ranges(self) -> Iterator[str]:
        for key, range_key, is_followed in (
            ("policy_clip", "policy_clip_range", self.objective == "clip"),
            ("kl_penalty", "kl_penalty_range", self.objective == "kl_penalty"),
            ("initial_learning_rate", "learning_rate_range", self.learning_rate_schedule == "kl"),
        ):
            limits, first = getattr(self, range_key), getattr(self, key)
            if is_followed and limits is not None and not limits[0] <= first <= limits[1]:
                yield (
                    f"{key}: {first:g} is not within {range_key}, {limits[0]:g} to {limits[1]:g}: "
                    "it counts for the first batch alone"
                )

    @property
    def _follows_target(self) -> bool:
        follows = self.policy_clip_range is not None or self.objective == "kl_penalty"
        return follows or self.learning_rate_schedule == "kl"

    @property
    def batch_steps(self) -> int:
        """Steps of one batch, without those before the rollouts."""
        return self.rollouts_per_batch * self.episode_len

    def annealing(self) -> Schedule:
        """Return the part of the learning rate left by step: all unless it is ``linear``."""
        whole = super().annealing()
        if self.learning_rate_schedule == "linear":
            return whole
        return replace(whole, until=inf, until_key="learning_rate_schedule")

    @property
    def rollouts_of_batch(self) -> int:
        """Rollouts that are learnt from together."""
        return self.rollouts_per_batch


class DiscretePpo(PpoSettings, DiscreteSettings):
    """The keys of a section with discrete actions."""


class ContinuousPpo(PpoSettings, ContinuousSettings):
    """The keys of a section with continuous actions."""

    sigma: Literal["state", "free"] = "free"


def settings_of(section: Mapping[str, Any]) -> DiscretePpo | ContinuousPpo:
    """Return the settings of a section; ``continuous`` says of which kind they are."""
    kind = ContinuousPpo if section.get("continuous") else DiscretePpo
    return kind.model_validate(dict(section))
