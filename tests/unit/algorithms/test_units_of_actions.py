"""What is learnt does not depend on the units of the plant: to the bit, for every algorithm."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from learning_parts import Driven, Kept, Recorder
from processes import REPOSITORY

from relaax.algorithm_base import (
    Checkpoint,
    CheckpointMismatch,
    Evaluation,
    NullMetrics,
    NullSaver,
    Saver,
)
from relaax.algorithm_base.checkpoint import ACTION_UNITS
from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.learning.action_units import ActionUnits
from relaax.replay.process.replay_contents import Contents
from relaax.replay.step_batch import StepBatch
from relaax.server.learner.builder import checkpoint_of, restore_latest
from relaax.steps import START, Steps

COUNT, STEPS, ROLLOUT = 8, 12, 4
NUMBERS = {"state_size": [3], "action_size": 2, "hidden_layers": [8], "seed": 1}
ON_POLICY = {**NUMBERS, "episode_len": ROLLOUT}
OFF_POLICY = {
    **NUMBERS,
    "batch_size": 16,
    "learning_starts": 16,
    "random_steps": COUNT * 2,
    "updates_per_step": None,
}
FEW = {"passes": 2, "minibatches": 2}
SIGMA = {"sigma": "free", "initial_sigma": 0.8}

#: By name: the algorithm and its section, but for the bounds.
CASES = {
    "sac": ("sac", OFF_POLICY),
    "td3": ("ddpg", {**OFF_POLICY, "twin": True}),
    "ddpg, correlated noise": ("ddpg", {**OFF_POLICY, "exploration": {"type": "ou"}}),
    "ddpg, noise on parameters": (
        "ddpg",
        {**OFF_POLICY, "exploration": {"type": "parameters", "target": 0.2}},
    ),
    "da3c_cont": ("da3c_cont", {**ON_POLICY, "lstm": False}),
    "da3c_cont, free": ("da3c_cont", {**ON_POLICY, "lstm": False, **SIGMA}),
    "acer": (
        "acer",
        {**ON_POLICY, "continuous": True, "rollouts_per_update": 8, "replay_ratio": 0, **SIGMA},
    ),
    "trpo": ("trpo", {**ON_POLICY, "continuous": True, "rollouts_per_batch": 8, **SIGMA}),
    "ppo": ("ppo", {**ON_POLICY, "continuous": True, "rollouts_per_batch": 8, **SIGMA, **FEW}),
}

#: Narrow around the middle, and wide off the middle.
LOW, HIGH = [-0.01, -5], [0.01, 1000]


def section_of(name, low, high):
    return {**CASES[name][1], "action_low": low, "action_high": high}


class Played:
    """A training whose environments show the same states whatever is done, and what it learnt."""

    def __init__(self, name, section):
        self.algorithm = load_algorithm(REPOSITORY / "algorithms" / CASES[name][0])
        self.config = self.algorithm.Config(section)
        server = self.algorithm.ParameterServer(self.config, NullSaver(), NullMetrics())
        self.bridge, kept = Recorder(server.bridge()), Kept()
        more = {"experience": kept} if self.algorithm.has_learner(self.config) else {}
        agent = self.algorithm.make_batch_agent(self.config, self.bridge, 3, False, **more)
        with closing(agent):
            self.actions = self._acted(agent)
            with closing(agent.evaluator(Evaluation.STOCHASTIC)) as samples:
                self.samples = self._acted(samples)
            with closing(agent.evaluator(Evaluation.DETERMINISTIC)) as modes:
                self.modes = self._acted(modes)
        self.stored = [vars(batch) for batch in kept.rollouts]
        self.learnt = self._learnt(kept.rollouts)

    def _acted(self, agent):
        random, driven = np.random.default_rng(7), Driven(agent)
        slots, chosen = driven.open(COUNT), []
        for step in range(STEPS):
            states = random.normal(size=(COUNT, 3)).astype(np.float32)
            flags = np.full(COUNT, START if step == 0 else 0, np.uint8)
            rewards = random.normal(size=COUNT)
            self.bridge.increment_global_t(COUNT)
            chosen.append(driven.act(Steps(slots, flags, rewards, states, states[:0])))
        driven.close_slots(slots)
        return np.stack(chosen)

    def _learnt(self, batches):
        """All gradients, or the state of a learner that has learnt from all that was stored."""
        if not self.algorithm.has_learner(self.config):
            return [gradient for gradient, *_ in self.bridge.gradients]
        spec = self.algorithm.replay_spec(self.config)
        replay = spec.make(np.random.default_rng(3), 60.0)
        replay.open_writer("w", spec.schema)
        stored = StepBatch.concatenated(batches)
        for slot in range(COUNT):
            its = np.flatnonzero(stored.slots == slot)[: ROLLOUT + 1]
            columns = {name: stored.columns[name][its] for name in spec.schema.columns}
            replay.append("w", slot, 0, columns, stored.flags[its])
        learner = self.algorithm.make_learner(self.config, 3)
        with closing(learner):
            if not learner.values():
                learner.take(self.bridge.pull())
            ((table, each),) = learner.inputs.items()
            sample = replay.sample(table, each.batch_size, 1.0)
            for _ in range(2):
                list(learner.steps({table: each.prepare(sample)}))
            return list(learner.state().values())


@pytest.mark.parametrize("name", CASES)
def test_what_is_learnt_is_the_same_to_the_bit_whatever_the_bounds(name):
    own = Played(name, section_of(name, -1, 1))
    played = Played(name, section_of(name, LOW, HIGH))
    assert len(played.learnt) > 0
    for found, expected in zip(played.learnt, own.learnt, strict=True):
        np.testing.assert_array_equal(found, expected)
    for found, expected in zip(played.stored, own.stored, strict=True):
        np.testing.assert_equal(found, expected)
    units = ActionUnits(np.array(LOW), np.array(HIGH))
    for kind in ("actions", "samples", "modes"):
        expected = units.to_plant(getattr(own, kind))
        np.testing.assert_array_equal(getattr(played, kind), expected)
        assert expected.std() > 0


class KeptCheckpoint(Saver):
    """Restores the checkpoint that was saved."""

    checkpoint = None

    def save(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint

    def restore_latest(self) -> Checkpoint | None:
        return self.checkpoint

    def location(self) -> str:
        return "here"


def older(checkpoint):
    """Return a checkpoint as versions before this one saved it, in the plant's units."""
    fingerprint = {k: v for k, v in checkpoint.fingerprint.items() if k != ACTION_UNITS}
    return replace(checkpoint, fingerprint=fingerprint)


#: One of each algorithm.
ONE = {algorithm: name for name, (algorithm, _) in CASES.items()}.values()


class TestCheckpoints:
    """Those of other units are refused, by name; those of older versions, too."""

    def served(self, name, low, high, saver):
        algorithm = load_algorithm(REPOSITORY / "algorithms" / CASES[name][0])
        config = algorithm.Config(section_of(name, low, high))
        return algorithm.ParameterServer(config, saver, NullMetrics())

    @pytest.mark.parametrize("name", ONE)
    def test_the_parameter_servers(self, name):
        saver = KeptCheckpoint()
        self.served(name, -2, 2, saver).save_checkpoint()
        self.served(name, -2, 2, saver).restore_latest_checkpoint()
        both = r"action_units is \[-2.0, 2.0\] in the checkpoint and \[-1000.0, 1000.0\] here"
        with pytest.raises(CheckpointMismatch, match=both):
            self.served(name, -1000, 1000, saver).restore_latest_checkpoint()
        saver.save(older(saver.checkpoint))
        both = r"action_units is \[-1, 1\], or of a version with .* and \[-2.0, 2.0\] here"
        with pytest.raises(CheckpointMismatch, match=both):
            self.served(name, -2, 2, saver).restore_latest_checkpoint()

    @pytest.mark.parametrize("name", ONE)
    def test_between_minus_one_and_one_older_ones_go_on(self, name):
        saver = KeptCheckpoint()
        self.served(name, -1, 1, saver).save_checkpoint()
        assert older(saver.checkpoint) == saver.checkpoint
        self.served(name, -1, 1, saver).restore_latest_checkpoint()

    @pytest.mark.parametrize("name", ["sac", "ppo"])
    def test_the_learners_and_what_a_replay_holds(self, name, tmp_path):
        algorithm = load_algorithm(REPOSITORY / "algorithms" / CASES[name][0])
        config, own = (algorithm.Config(section_of(name, -low, low)) for low in (2, 1))
        assert (own.units(), config.units()) == ({}, {ACTION_UNITS: [-2, 2]})
        saver = KeptCheckpoint()
        with closing(algorithm.make_learner(own, 3)) as learner:
            saver.save(checkpoint_of(learner, 1, own.units()))
            assert restore_latest(learner, saver, own.units()) == 1
            with pytest.raises(CheckpointMismatch, match=r"and \[-2.0, 2.0\] here"):
                restore_latest(learner, saver, config.units())
        for written, read in ((own, config), (config, own)):
            spec = algorithm.replay_spec(written)
            replay, store = (
                spec.make(np.random.default_rng(0), 60.0),
                CheckpointSaver(DirectoryStore(tmp_path / str(written.units()))),
            )
            replay.open_writer("w", spec.schema)
            rows = {
                name: np.zeros((2, *column.shape), column.dtype)
                for name, column in spec.schema.columns.items()
            }
            replay.append("w", 0, 0, rows, np.array([START, 0], np.uint8))
            Contents(replay, spec, store).save()
            assert Contents(replay, spec, store).restore() == 2
            with pytest.raises(CheckpointMismatch, match="action_units is"):
                Contents(replay, algorithm.replay_spec(read), store).restore()


@pytest.mark.parametrize("bounds", [{"action_high": None}, {"action_low": [-np.inf, -1]}])
def test_where_actions_lie_between_bounds_both_are_asked_for(bounds):
    for name in ("sac", "ddpg"):
        algorithm = load_algorithm(REPOSITORY / "algorithms" / name)
        with pytest.raises(ValueError, match="action_low and action_high must both be finite"):
            algorithm.Config({**NUMBERS, **bounds})
