"""What is learnt from is what was acted on, whatever numbers an image is made of."""

from contextlib import closing

import numpy as np
import pytest
from learning_parts import Driven, Kept
from processes import REPOSITORY

from relaax.acting.actor import Actor
from relaax.algorithm_base import InvalidState, NullMetrics, NullSaver
from relaax.configuration.algorithm_loader import load_algorithm
from relaax.errors import ConfigurationError
from relaax.observations import mapped
from relaax.replay.step_batch import StepBatch
from relaax.replay.storage import joined_arrays
from relaax.steps import START, Steps

IMAGE, TABLE = (20, 20, 1), (5, 5)
SMALL = {
    "network": [{"conv2d": {"filters": 2, "kernel": 8, "stride": 8}}, {"dense": {"units": 4}}],
    "seed": 1,
}  # fmt: skip
OFF_POLICY = {**SMALL, "learning_starts": 1, "batch_size": 8, "updates_per_step": None}
CONTINUOUS = {**OFF_POLICY, "action_size": 1}

#: The layers that an algorithm must have.
MEMORY = {"r2d2": [{"lstm": 4}]}

SECTIONS = {
    "acer": {
        **SMALL, "action_size": 2, "episode_len": 4, "rollouts_per_update": 2, "replay_ratio": 0,
    },
    "sac": CONTINUOUS,
    "ddpg": {**CONTINUOUS, "twin": True},
    "dqn": {**OFF_POLICY, "action_size": 2},
    "impala": {**SMALL, "action_size": 2, "episode_len": 4, "rollouts_per_update": 2},
    "mappo": {**SMALL, "action_size": 2, "episode_len": 4, "rollouts_per_batch": 2, "passes": 1},
    "ppo": {**SMALL, "action_size": 2, "episode_len": 4, "rollouts_per_batch": 2, "passes": 1},
    "r2d2": {
        "network": [*SMALL["network"], *MEMORY["r2d2"]], "seed": 1, "action_size": 2,
        "sequence_len": 2, "sequence_overlap": 1, "burn_in": 1, "n_step": 1,
        "learning_starts": 1,
    },
    "trpo": {
        **SMALL, "action_size": 2, "episode_len": 4, "rollouts_per_batch": 2,
        "value_minibatches": 1, "value_passes": 1,
    },
    "unreal": {  # its other tables have the same steps
        **SMALL, "action_size": 2, "episode_len": 4, "rollouts_per_update": 2,
        "pixel_control": False, "reward_prediction": False, "value_replay": False,
    },
}  # fmt: skip

RANDOM = np.random.default_rng(0)

#: Pictures that simulators report, for 12 steps of two environments.
IMAGES = {
    "bytes": RANDOM.integers(0, 256, (12, 2, *IMAGE)).astype(np.uint8),
    "fractions": RANDOM.random((12, 2, *IMAGE)).astype(np.float32),
    "doubles": RANDOM.random((12, 2, *IMAGE)),
    "halves": RANDOM.random((12, 2, *IMAGE)).astype(np.float16),
    "depths": RANDOM.integers(0, 2**16, (12, 2, *IMAGE)).astype(np.uint16),
    "heights": RANDOM.integers(-(2**15), 2**15, (12, 2, *IMAGE)).astype(np.int16),
    "counts": RANDOM.integers(0, 10**6, (12, 2, *IMAGE)).astype(np.int32),
    "masks": RANDOM.integers(0, 2, (12, 2, *IMAGE)).astype(np.bool_),
}


def seen(image):
    """An image as a network sees it: only bytes are scaled."""
    return image.astype(np.float32) / (255 if image.dtype == np.uint8 else 1)


class Playing:
    """An agent of two environments, its replay and its learner."""

    def __init__(self, name, section):
        self.algorithm = load_algorithm(REPOSITORY / "algorithms" / name)
        self.config = self.algorithm.Config({**SECTIONS[name], **section})
        server = self.algorithm.ParameterServer(self.config, NullSaver(), NullMetrics())
        self.kept = Kept()
        self.bridge = server.bridge()
        self.agent: Actor = self.algorithm.make_batch_agent(
            self.config, self.bridge, 1, False, experience=self.kept
        )
        self.driven = Driven(self.agent)
        self.slots = self.driven.open(2)

    def play(self, states):
        """Let both environments report ``states`` [T, 2, ...] in turn; return the actions."""
        actions = []
        none = mapped(lambda part: part[:0], states[0])
        for number, each in enumerate(states):
            flags = np.full(2, START if number == 0 else 0, np.uint8)
            actions.append(self.driven.act(Steps(self.slots, flags, np.zeros(2), each, none)))
        return np.stack(actions)

    def replay(self):
        """Return a replay with all steps."""
        spec = self.algorithm.replay_spec(self.config)
        replay = spec.make(np.random.default_rng(1), 60.0)
        replay.open_writer("worker", spec.schema)
        steps = StepBatch.concatenated(self.kept.rollouts)
        for slot in self.slots.tolist():
            mine = steps.chosen(steps.slots == slot)
            rows = {name: mine.columns[name] for name in replay.schema.columns}
            replay.append("worker", slot, 0, rows, mine.flags)
        return replay

    def drawn(self, count):
        """Return the learner, and a batch that it has prepared."""
        learner = self.algorithm.make_learner(self.config, 1)
        ((table, each),) = learner.inputs.items()
        return learner, {table: each.prepare(self.replay().sample(table, count, 0.0))}

    def close(self):
        self.agent.close()


def rows_of(observations):
    """The different observations [..., 20, 20, 1] of a batch, as a network sees them."""
    flat = seen(observations).reshape(-1, np.prod(observations.shape[-3:]))
    return {row.tobytes() for row in flat}


#: How many items are drawn: transitions, or the rollouts of a batch.
COUNTS = dict.fromkeys(SECTIONS, 50) | dict.fromkeys(
    ("acer", "impala", "mappo", "ppo", "trpo", "unreal"), 2
)

KINDS = [("dqn", kind) for kind in IMAGES] + [
    (name, kind)
    for name in ("acer", "sac", "ddpg", "impala", "ppo", "r2d2", "trpo", "unreal")
    for kind in ("bytes", "fractions")
]


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_a_stored_image_is_seen_as_it_was_when_acting(name, kind):
    images = IMAGES[kind][:6]
    with closing(Playing(name, {"state_size": list(IMAGE)})) as playing:
        playing.play(images)
        learner, batches = playing.drawn(COUNTS[name])
        (batch,) = batches.values()
        expected = {seen(image).tobytes() for image in images.reshape(-1, *IMAGE)}
        assert rows_of(batch.observations) <= expected
        stored = np.uint8 if kind == "bytes" else np.float32
        assert batch.observations.dtype == stored
        if kind == "fractions":
            list(learner.steps(batches))  # the network takes it


@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8])
def test_a_table_of_features_is_seen_by_dense_layers_as_it_is(name, dtype):
    tables = RANDOM.integers(0, 9, (6, 2, *TABLE)).astype(dtype)
    section = {
        "state_size": list(TABLE),
        "network": [{"dense": {"units": 8}}, *MEMORY.get(name, [])],
    }
    with closing(Playing(name, section)) as playing:
        playing.play(tables)
        _, batches = playing.drawn(COUNTS[name])
        (batch,) = batches.values()
        found = seen(batch.observations).reshape(-1, 25)
        expected = {seen(table).tobytes() for table in tables.reshape(-1, 25)}
        assert {row.tobytes() for row in found} <= expected
        assert playing.config.network.has_convolutions is False


def test_histories_and_named_images_keep_their_numbers():
    size = {"camera": list(IMAGE), "depth": [20, 20], "speed": [2]}
    states = [
        {
            "camera": IMAGES["bytes"][number],
            "depth": IMAGES["fractions"][number, ..., 0],
            "speed": np.full((2, 2), 0.5),
        }
        for number in range(12)
    ]
    section = {"state_size": size, "history_len": 3, "network": None}
    with closing(Playing("dqn", section)) as playing:
        playing.play(states)
        learner, batches = playing.drawn(50)
        (batch,) = batches.values()
        types = {name: part.dtype for name, part in batch.observations.items()}
        assert types == {"camera": np.uint8, "depth": np.float32, "speed": np.float32}
        depths = {each.tobytes() for each in IMAGES["fractions"].reshape(-1, 20, 20)}
        newest = batch.observations["depth"][..., -1]
        assert {each.tobytes() for each in newest} <= depths
        list(learner.steps(batches))


def test_bytes_that_come_after_fractions_become_what_a_network_makes_of_them():
    with closing(Playing("dqn", {"state_size": list(IMAGE)})) as playing:
        playing.play(IMAGES["fractions"])
        checked = playing.agent.check(IMAGES["bytes"][0])
        np.testing.assert_allclose(checked, IMAGES["bytes"][0] / 255, rtol=1e-6)


def test_fractions_that_come_after_bytes_are_refused_by_name():
    with closing(Playing("dqn", {"state_size": list(IMAGE)})) as playing:
        playing.play(IMAGES["bytes"])
        with pytest.raises(InvalidState, match=r"a state is of float32, .* stored with uint8"):
            playing.agent.check(IMAGES["fractions"][0])


def test_a_writer_of_another_type_is_refused_by_name():
    with closing(Playing("sac", {"state_size": list(IMAGE)})) as playing:
        playing.play(IMAGES["fractions"])
        replay = playing.replay()
        schema = playing.algorithm.replay_spec(playing.config).schema
        types = {name: column.dtype for name, column in schema.columns.items()}
        (wrong,) = replay.open_writer("another", schema.settled(types))
        assert wrong == (
            "column 'observation' is uint8 [20, 20, 1], and must be float32 [20, 20, 1]"
        )


def test_parts_of_a_batch_that_mean_different_numbers_are_not_joined():
    with pytest.raises(ConfigurationError, match="of float32 and of uint8"):
        joined_arrays([IMAGES["fractions"], IMAGES["bytes"]], axis=0)


def test_a_replay_goes_on_with_the_type_that_was_saved():
    with closing(Playing("dqn", {"state_size": list(IMAGE)})) as playing:
        playing.play(IMAGES["depths"])
        replay = playing.replay()
        again = playing.algorithm.replay_spec(playing.config).make(np.random.default_rng(1), 60.0)
        again.restore(replay.contents())
        assert again.schema.columns["observation"].dtype == np.float32
        found = again.sample("all", 20, 0.0).columns["observation"]
        expected = {seen(each).tobytes() for each in IMAGES["depths"].reshape(-1, *IMAGE)}
        assert rows_of(found) <= expected
