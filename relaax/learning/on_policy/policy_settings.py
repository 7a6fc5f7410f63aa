"""The keys that the section of an algorithm with a policy and a value has in the YAML file."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from relaax.algorithm_base.config_base import LISTED, require_effect
from relaax.learning.intrinsic import IntrinsicSection
from relaax.learning.method_config import MethodSettings, SharingSettings
from relaax.parameters.optimizers import OptimizerSections
from relaax.parameters.schedule import Schedule

#: A state of this many dimensions is an image: height and width, perhaps channels.
IMAGE_DIMENSIONS = (2, 3)

#: So many batches are kept in memory, so that many environments may be within a rollout.
BATCHES_STORED = 32

#: A replay_size with places for fewer environments is doubted.
FEW_ENVIRONMENTS = 32


class RolloutSettings(MethodSettings):
    """The keys of the ``algorithm:`` section that describe network, rollouts, and their learner.

    Those of actions are in ``DiscreteSettings`` and ``ContinuousSettings``, and those of learning
    by gradients in ``PolicySettings``.
    """

    #: Units of the dense layers before the heads; None: [256] after convolutions, else [64, 64].
    hidden_layers: Annotated[tuple[PositiveInt, ...] | None, LISTED] = None
    #: A recurrent layer between the dense layers and the heads.
    lstm: bool = False
    #: Cells of that layer.
    lstm_size: PositiveInt = 256
    #: Initial parameters: ``uniform`` as in the seed, or ``orthogonal``, which keeps the size of
    #: signals through many layers.
    initialization: Literal["uniform", "orthogonal"] = "uniform"
    #: Rows of one rollout: steps, and states in which an episode was cut off.
    episode_len: PositiveInt = 5
    #: Environment steps of all agents together after which the training is over.
    max_global_step: float = Field(1e8, ge=1)
    #: Where rollouts are learnt from: in workers, whose gradients move the parameters of the
    #: parameter server, or in a process of its own, which publishes the parameters.
    learner: Literal["worker", "process"] = "worker"
    #: Rows of the same episode before a rollout, from which a recurrent layer finds its state.
    burn_in: NonNegativeInt = 0
    #: How many steps of a learner in a process acting may be ahead: so many batches are complete
    #: beside the one that is learnt from. With 0, acting waits while a batch is learnt from.
    max_policy_lag: NonNegativeInt = 0
    #: How many versions of the parameters a rollout may be older than those that learn from it: it
    #: is begun when that is certain. 0: acting and learning take turns. None: ``max_policy_lag``
    #: alone keeps acting near learning.
    max_staleness: NonNegativeInt | None = None
    #: Steps that are stored; None: those of 32 batches, and of those that acting may be ahead.
    replay_size: PositiveInt | None = None
    #: How often workers ask for newer parameters, in seconds.
    pull_interval_s: PositiveFloat = 0.02
    #: Rewards for states that are new to the agent, beside those of the environment; None: none.
    intrinsic: IntrinsicSection | None = None

    @model_validator(mode="after")
    def _describes_one_network(self) -> "RolloutSettings":
        given = sorted(self.model_fields_set & {"hidden_layers", "lstm", "lstm_size"})
        if self.network is not None and given:
            raise ValueError(f"network and {given[0]} exclude each other: write all layers there")
        return self

    def doubts(self) -> Iterator[str]:
        """Yield warnings: sentences about values that are allowed, and hardly meant."""
        yield from super().doubts()
        if self.replay_size is not None and self._environments < FEW_ENVIRONMENTS:
            yield (
                f"replay_size: {self.replay_size:,} steps hold the rollouts of "
                f"{self._environments} environments that play at once: those of more are dropped"
            )

    @model_validator(mode="after")
    def _keeps_its_batches(self) -> "RolloutSettings":
        if self.learner == "worker":
            keys = (
                "burn_in", "max_policy_lag", "max_staleness", "replay_size", "pull_interval_s",
                "learners",
            )  # fmt: skip
            require_effect(self, keys, "learner: process")
            return self
        if self.max_staleness is not None and "max_policy_lag" in self.model_fields_set:
            raise ValueError(
                "max_staleness and max_policy_lag exclude each other: the first one bounds all "
                "rollouts from their begin on, the second one those that are complete"
            )
        batches = 2 + self.batches_ahead
        least = batches * self._stored_batch_steps
        if self.replay_size is not None and self.replay_size < least:
            raise ValueError(
                f"replay_size must be at least {batches} batches, two and those of {self._bound}, "
                f"{least} steps, is {self.replay_size}"
            )
        return self

    @property
    def rollouts_of_batch(self) -> int:
        """Rollouts that are learnt from together."""
        return 1

    @property
    def batches_ahead(self) -> int:
        """How many batches acting may be ahead of the one that is learnt from."""
        return self.max_policy_lag if self.max_staleness is None else self.max_staleness

    @property
    def _bound(self) -> str:
        return "max_policy_lag" if self.max_staleness is None else "max_staleness"

    @property
    def steps_stored(self) -> int:
        """Steps that are stored, the default filled in."""
        return self.replay_size or (BATCHES_STORED + self.batches_ahead) * self._stored_batch_steps

    @property
    def _environments(self) -> int:
        """How many environments have a place beside the batches that wait, a rollout each."""
        waiting = (self.batches_ahead + 1) * self.rollouts_of_batch * self.episode_len
        return (self.steps_stored - waiting) // (self.episode_len + self.burn_in + 1)

    @property
    def _stored_batch_steps(self) -> int:
        return self.rollouts_of_batch * (self.episode_len + self.burn_in)

    @property
    def is_image(self) -> bool:
        """Whether states, or some of the observations in them, are images."""
        sizes = self.inputs.values() if isinstance(self.inputs, Mapping) else [self.inputs]
        return any(len(size) in IMAGE_DIMENSIONS for size in sizes)

    @property
    def dense_units(self) -> tuple[int, ...]:
        """Units of the dense layers, the default filled in."""
        if self.hidden_layers is not None:
            return self.hidden_layers
        return (256,) if self.is_image else (64, 64)


class PolicySettings(RolloutSettings, OptimizerSections, SharingSettings):
    """The keys of learning from rollouts by gradients of policy and value."""

    #: Annealed to zero at ``max_global_step`` (Mnih et al. 2016, section 5.1).
    initial_learning_rate: PositiveFloat = 7e-4
    #: The step at which annealing begins: a training that has ended goes on with a new schedule.
    anneal_from: float = Field(0.0, ge=0)
    entropy_beta: float = Field(0.01, ge=0)
    #: Weight of the value loss beside the policy loss.
    value_loss_weight: PositiveFloat = 0.5
    #: Lambda of the returns: 1 for n-step returns, less to trust the values more than the rewards.
    trace_decay: float = Field(1.0, ge=0, le=1)
    #: Give the advantages of each update mean 0 and standard deviation 1.
    normalize_advantages: bool = False
    #: How often each rollout is learnt from, with an update each time.
    passes: PositiveInt = 1
    #: Into how many updates the rollouts of each pass are divided at random.
    minibatches: PositiveInt = 1
    #: Stop moving the probability of an action once it is this fraction away from what it was
    #: when the action was chosen; None moves it freely.
    policy_clip: float | None = Field(None, gt=0, lt=1)

    @model_validator(mode="after")
    def _anneals(self) -> "PolicySettings":
        if self.anneal_from >= self.max_global_step:
            raise ValueError(
                f"anneal_from, {self.anneal_from:g}, must lie below max_global_step, "
                f"{self.max_global_step:g}"
            )
        return self

    @model_validator(mode="after")
    def _counts_its_versions(self) -> "PolicySettings":
        if self.max_staleness is not None and self.learners is not None:
            raise ValueError(
                "max_staleness counts the versions of one learner: leave out learners, or write "
                "max_policy_lag"
            )
        return self

    @property
    def are_gradients_single(self) -> bool:
        """Whether gradients come to the parameter server, each by itself: also those of workers."""
        return self.learner == "worker" or super().are_gradients_single

    def annealing(self) -> Schedule:
        """Return the part of ``initial_learning_rate`` by the global step."""
        return Schedule(
            name="learning rate",
            start=1.0,
            end=0.0,
            until=self.max_global_step,
            until_key="max_global_step",
            begin=self.anneal_from,
            begin_key="anneal_from",
        )
