"""Wires UNREAL: the one place that reads the configuration, and hands values to parts."""

from dataclasses import replace
from typing import Any, Protocol

from relaax.algorithm_base import Input, Learner
from relaax.assembly import ExperienceParts, OnPolicyBuilder, bundled
from relaax.assembly.parts import Home
from relaax.learning.model import Objective
from relaax.learning.rollouts import ROLLOUTS
from relaax.learning.steps import rollouts_of
from relaax.replay.limiter import Limiter
from relaax.replay.specs import TableSpec
from relaax.replay.views import Rollouts

from .config import Config

#: Tables beside that of fresh rollouts: stored ones, and steps, half of them with a reward.
REPLAYED, REWARDED = "replayed", "rewarded"


class ActorCriticBuilder(Protocol):
    """The part of DA3C's builder that is needed here."""

    def objective(self) -> Objective:
        """Return DA3C's loss."""


class UnrealBuilder(OnPolicyBuilder[Config]):
    """DA3C's loss over fresh rollouts, and auxiliary tasks over stored ones."""

    def experience(self) -> ExperienceParts:
        """See MethodBuilder: the same stored steps are drawn as they come, and again."""
        parts, keys = super().experience(), self.config.settings
        limiter, views = Limiter(keys.replayed_of_batch), self._views()
        replayed = {
            name: TableSpec(view, "balanced" if name == REWARDED else "uniform", limiter)
            for name, view in views.items()
        }
        return replace(parts, tables={**parts.tables, **replayed})

    def learner(self, home: Home) -> Learner:
        """See MethodBuilder."""
        from relaax.learning.networks.parameters_tf import ParameterTensors

        from .method_tf import Losses, UnrealLearner

        keys, network = self.config.settings, self.network()
        fresh = Input(keys.rollouts_of_batch, rollouts_of, is_on_policy=True)
        stored = {  # classes of rewards are the environment's own
            name: Input(keys.replayed_of_batch, rollouts_of, takes_intrinsic=name != REWARDED)
            for name in self._views()
        }
        return UnrealLearner(
            Losses(network, self._actor_critic(), self._tasks()),
            ParameterTensors(network, keys.gpu),
            home.policy,
            {ROLLOUTS: fresh, **stored},
            keys.optimizer.gradient_norm_clipping,
        )

    def _views(self) -> dict[str, Rollouts]:
        """Return the items of the tables that auxiliary tasks draw from; each step begins one."""
        keys, views = self.config.settings, {}
        if keys.pixel_control is not None or keys.value_replay is not None:
            views[REPLAYED] = Rollouts(keys.episode_len, keys.burn_in, keys.episode_len - 1)
        if keys.reward_prediction is not None:
            views[REWARDED] = Rollouts(1, keys.reward_prediction.frames - 1)
        return views

    def _actor_critic(self) -> Objective:
        da3c: ActorCriticBuilder = bundled("da3c").Builder(self.config)
        return da3c.objective()

    def _tasks(self) -> dict[str, list[Any]]:
        """Return the tasks by their tables, in the order of these."""
        from . import method_tf as method

        keys, replayed = self.config.settings, list[Any]()
        tasks = {REPLAYED: replayed}
        if (pixels := keys.pixel_control) is not None:
            of_image = pixels.cell, keys.grid, keys.action_size, keys.image[0]
            replayed.append(method.PixelControl(pixels.weight, pixels.discount, *of_image))
        if (values := keys.value_replay) is not None:
            replayed.append(method.ValueReplay(values.weight, keys.rewards_gamma))
        if (rewards := keys.reward_prediction) is not None:
            tasks[REWARDED] = [method.RewardPrediction(rewards.weight)]
        return {table: some for table, some in tasks.items() if some}
