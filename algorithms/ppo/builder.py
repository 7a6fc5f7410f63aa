"""Wires PPO: the one place that reads the configuration, and hands values to parts."""

from typing import Any

from relaax.assembly import OnPolicyBuilder
from relaax.learning.on_policy.learner import Method

from .adaptation import Adaptation, AdaptedKnobs, Knobs
from .config import Config
from .value_scale import ValueScale


class PpoBuilder(OnPolicyBuilder[Config]):
    """Proximal policy optimization, of discrete or continuous actions."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._values = ValueScale() if config.settings.normalize_values else None
        self.knobs = AdaptedKnobs(self._first_knobs(), self._adaptation(), self._values)

    def method(self, tensors: Any) -> Method[Any]:
        """See OnPolicyBuilder."""
        from relaax.learning.distributions.graph_tf import graph_of
        from relaax.learning.on_policy.passes_tf import SurrogatePasses

        from .method_tf import Ppo

        settings, network = self.config.settings, self.network()
        surrogate = Ppo(
            graph_of(self.config.distribution),
            discount=settings.rewards_gamma,
            trace_decay=settings.trace_decay,
            normalizes=settings.normalize_advantages,
            entropy_beta=settings.entropy_beta,
            value_loss_weight=settings.value_loss_weight,
            clips=settings.objective == "clip",
            kl_target=settings.kl_target,
            kl_cutoff=settings.kl_cutoff,
            value_clip=settings.value_clip,
            decoupled=settings.decoupled,
            huber_delta=settings.huber_delta,
            value_scale=self._values,
        )
        count = settings.rollouts_per_batch * (1 if network.lstm_size else settings.episode_len)
        minibatch = -(-count // settings.minibatches)
        return SurrogatePasses(
            network, tensors, surrogate, self.knobs, minibatch, settings.mask_name, settings.kl_stop
        )

    def learning_rate(self) -> float:
        """See OnPolicyBuilder: it may be adapted."""
        return self.knobs.now.learning_rate

    def _first_knobs(self) -> Knobs:
        settings = self.config.settings
        return Knobs(
            settings.policy_clip or 0.0, settings.kl_penalty, settings.initial_learning_rate
        )

    def _adaptation(self) -> Adaptation:
        """Return which knobs follow ``kl_target``."""
        settings = self.config.settings
        follows = settings.learning_rate_schedule == "kl"
        return Adaptation(
            settings.kl_target,
            clip_range=settings.policy_clip_range,
            penalty_range=settings.kl_penalty_range if settings.objective == "kl_penalty" else None,
            learning_rate_range=settings.learning_rate_range if follows else None,
        )
