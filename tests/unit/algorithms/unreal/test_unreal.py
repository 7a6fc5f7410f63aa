"""UNREAL's auxiliary tasks beside numpy, and its whole gradient beside differences of the loss."""

import importlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from rollout_samples import random_rollouts

from relaax.algorithm_base import Values, Version
from relaax.assembly.parts import Home
from relaax.learning.arrays import zero_padded
from relaax.learning.networks import initial_parameters
from relaax.learning.networks.parameters_tf import ParameterTensors
from relaax.learning.policy import CurrentPolicy
from relaax.learning.rollouts import ROLLOUTS
from relaax.observations import mapped
from relaax.replay.storage import START, TERMINATED

ACTIONS, STEPS, DISCOUNT = 3, 5, 0.9

#: Images of 10x9 pixels, of which 8x8 are four by four cells of two by two.
SECTION = {
    "state_size": [10, 9, 2], "action_size": ACTIONS, "episode_len": STEPS, "seed": 4,
    "network": {
        "layers": [{"conv2d": {"filters": 2, "kernel": 3, "stride": 2}}, {"dense": 6}, {"lstm": 5}],
        "previous": ["action", "reward"],
    },
    "pixel_control": {"cell": 2, "channels": 3, "discount": DISCOUNT, "weight": 0.5},
    "reward_prediction": {"units": 4, "weight": 0.7}, "value_replay": {"weight": 0.3},
    "rollouts_per_update": 3, "replayed": 4, "max_global_step": 100_000,
}  # fmt: skip

DTYPES = {"": np.uint8, "previous/action": np.float32, "previous/reward": np.float32}

GRID, CELLS = (4, 4), 16


@pytest.fixture(name="method")
def _method(unreal):
    return importlib.import_module(f"{unreal.__name__}.method_tf")


def rollouts_for(config, count, steps=STEPS):
    return random_rollouts(config.network, ACTIONS, count, steps, DTYPES)


def changes_of(images, starts, cell, grid):
    """Pixel by pixel."""
    (rows, columns), (height, width) = grid, images.shape[2:4]
    top, left = (height - rows * cell) // 2, (width - columns * cell) // 2
    found = np.zeros((len(images) - 1, images.shape[1], rows * columns))
    for row in range(rows):
        for column in range(columns):
            y, x = top + row * cell, left + column * cell
            pixels = images[:, :, y : y + cell, x : x + cell].astype(float) / 255
            sizes = np.abs(np.diff(pixels, axis=0)).mean((2, 3, 4))
            found[:, :, row * columns + column] = sizes * (1 - starts[1:])
    return found


def test_the_change_of_a_cell_is_the_mean_over_its_pixels_and_channels(method):
    """One pixel of four changes by 51 in one of two channels: 51 / 255 / 8."""
    images = np.zeros((2, 1, 10, 9, 2), np.uint8)
    images[1, 0, 1 + 2, 0 + 5, 1] = 51  # the first pixel of the cell in row 1 and column 2
    images[1, 0, 0] = images[1, 0, :, 8] = 255  # beside the cells
    found = method.pixel_changes(images, np.zeros((2, 1), np.float32), 2, GRID).numpy()
    expected = np.zeros((1, 1, CELLS))
    expected[0, 0, 1 * 4 + 2] = 51 / 255 / 8
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_changes_agree_with_numpy_and_end_with_an_episode(method):
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (4, 3, 10, 9, 2), np.uint8)
    starts = np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]], np.float32)
    found = method.pixel_changes(images, starts, 2, GRID).numpy()
    np.testing.assert_allclose(found, changes_of(images, starts, 2, GRID), rtol=1e-5, atol=1e-7)
    assert not found[0, 2].any()
    assert not found[2, 1].any()
    assert found[0, 0].all()


def test_images_of_floats_are_taken_as_they_are(method):
    images = np.zeros((2, 1, 8, 8, 1), np.float32)
    images[1] = 0.25
    found = method.pixel_changes(images, np.zeros((2, 1), np.float32), 2, GRID)
    np.testing.assert_allclose(found, 0.25)


def test_targets_of_control_sum_changes_up_to_an_end_or_a_cut(method):
    """Worked by hand, for one cell: no end; an end in the second step; a cut in the third row."""
    changes = np.array([1.0, 2, 4], np.float32)[:, None, None] * np.ones((1, 3, 1), np.float32)
    changes[2, 2] = 0
    terminated = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]], np.float32)
    valid = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0]], np.float32)
    best = np.array([8.0, 16, 32, 64], np.float32)[:, None, None] * np.ones((1, 3, 1), np.float32)
    found = method.control_targets(changes, terminated, valid, best, 0.5).numpy()[..., 0]
    assert found[:, 0].tolist() == [1 + 1 + 1 + 8, 2 + 2 + 16, 4 + 32]
    assert found[:, 1].tolist() == [1 + 1, 2, 4 + 32]
    assert found[:2, 2].tolist() == [1 + 1 + 8, 2 + 16]


def test_each_cell_has_targets_of_its_own(method):
    random = np.random.default_rng(1)
    changes, best = (random.random((rows, 2, 6)).astype(np.float32) for rows in (3, 4))
    terminated = np.array([[0, 1], [0, 0], [0, 0]], np.float32)
    valid = np.ones((3, 2), np.float32)
    found = method.control_targets(changes, terminated, valid, best, 0.9).numpy()
    for cell in range(6):
        part = slice(cell, cell + 1)
        rows = changes[..., part], terminated, valid, best[..., part]
        alone = method.control_targets(*rows, 0.9)
        np.testing.assert_allclose(found[..., part], alone, rtol=1e-6)


def test_rewards_have_three_classes(method):
    rewards = np.array([0.0, 1e-3, 4, -2, -0.0], np.float32)
    assert method.reward_classes(rewards).numpy().tolist() == [0, 1, 1, 2, 0]


@pytest.mark.parametrize(
    ("state_size", "cell", "grid", "reshaped"),
    [
        ([84, 84], 4, (20, 20), (9, 9, 32)),  # the paper's: 80x80 pixels of 84x84
        ([20, 20, 3], 2, (10, 10), (4, 4, 32)),
        ([20, 36, 3], 4, (4, 8), (1, 3, 32)),
    ],
)
def test_the_last_layer_has_a_value_for_each_action_in_each_cell(
    unreal, state_size, cell, grid, reshaped
):
    network = [{"conv2d": {"filters": 2, "kernel": 3}}, {"dense": 8}]
    section = {"state_size": state_size, "action_size": 5, "network": network}
    config = unreal.Config({**section, "pixel_control": {"cell": cell}})
    head = config.network.head("pixel_control")
    assert config.settings.grid == grid
    assert head.layers[1].shape == reshaped
    assert head.layers[2].output_shape(reshaped) == (*grid, 5 + 1)
    assert head.outputs == grid[0] * grid[1] * 6
    shapes = {spec.name: spec.shape for spec in config.network.manifest.specs}
    assert shapes["pixel_control/deconv0/kernel"] == (4, 4, 32, 6)


def test_the_heads_of_tasks_are_described_in_the_network(unreal):
    heads = {"reward_prediction": {"layers": [{"dense": 7}]}}
    config = unreal.Config({**SECTION, "network": {**SECTION["network"], "heads": heads}})
    shapes = {spec.name: spec.shape for spec in config.network.manifest.specs}
    assert shapes["reward_prediction/kernel"] == (7, 3)


def control_of(method, cell=2, grid=GRID):
    return method.PixelControl(0.5, DISCOUNT, cell, grid, ACTIONS, "")


def test_values_of_cells_are_those_of_the_state_and_advantages_without_their_mean(method):
    outputs = np.random.default_rng(2).normal(size=(STEPS + 1, 2, CELLS * 4)).astype(np.float32)
    parts = outputs.reshape(STEPS + 1, 2, CELLS, 4).astype(float)
    advantages, of_state = parts[..., :3], parts[..., 3:]
    expected = of_state + advantages - advantages.mean(-1, keepdims=True)
    np.testing.assert_allclose(control_of(method).values(outputs), expected, rtol=1e-4, atol=1e-5)


def test_the_loss_of_control_is_of_the_actions_taken_in_all_cells(unreal, method):
    config, task = unreal.Config(SECTION), control_of(method)
    rollouts = rollouts_for(config, 4)
    outputs = np.random.default_rng(3).normal(size=(STEPS + 1, 4, CELLS * 4)).astype(np.float32)
    values = task.values(outputs).numpy().astype(float)
    changes = changes_of(rollouts.observations[""], rollouts.starts, 2, GRID)
    expected = 0.0
    for column in range(4):
        following = values[-1, column].max(-1)
        for row in reversed(range(STEPS)):
            if not rollouts.valid[row, column]:
                following = values[row, column].max(-1)
                continue
            continues = DISCOUNT * (1 - rollouts.terminated[row, column])
            following = changes[row, column] + continues * following
            error = following - values[row, column, :, rollouts.actions[row, column]]
            expected += rollouts.on_policy[row, column] * (error**2).sum() / 4
    assert float(task.loss(outputs, graph_of(method, rollouts))) == pytest.approx(
        expected, rel=1e-4
    )


def graph_of(method, rollouts):
    return method.GraphRollouts(*rollouts.columns())


def test_value_replay_learns_the_returns_of_stored_rollouts(unreal, method):
    rollouts = rollouts_for(unreal.Config(SECTION), 4)
    values = np.random.default_rng(5).normal(size=(STEPS + 1, 4, 1)).astype(np.float32)
    expected = 0.0
    for column in range(4):
        following = values[-1, column, 0]
        for row in reversed(range(STEPS)):
            value = values[row, column, 0]
            if not rollouts.valid[row, column]:
                following = value
                continue
            continues = 0.95 * (1 - rollouts.terminated[row, column])
            following = rollouts.rewards[row, column] + continues * following
            expected += (following - value) ** 2 / 2 / 4
    found = method.ValueReplay(0.3, 0.95).loss(values, graph_of(method, rollouts))
    assert float(found) == pytest.approx(expected, rel=1e-4)


def test_prediction_is_learnt_of_the_reward_behind_the_last_frame(unreal, method):
    """The class is of the last row: a row in which an episode was cut off has no reward."""
    rollouts = rollouts_for(unreal.Config(SECTION), 4, steps=3)
    rollouts.rewards[-1] = [0, 2, -1, 0]
    rollouts.valid[-1] = [1, 1, 1, 0]
    logits = np.random.default_rng(6).normal(size=(4, 3)).astype(np.float32)
    logs = logits - np.log(np.exp(logits.astype(float)).sum(1, keepdims=True))
    expected = -(logs[0, 0] + logs[1, 1] + logs[2, 2]) / 3
    found = method.RewardPrediction(1.0).loss(logits, graph_of(method, rollouts))
    assert float(found) == pytest.approx(expected, rel=1e-5)


def learner_of(unreal, **keys):
    builder = unreal.Builder(unreal.Config({**SECTION, **keys}))
    network = builder.config.network
    vector = initial_parameters(network.manifest, "orthogonal", 3)
    policy = CurrentPolicy(ParameterTensors(network).unpack, Values(Version(7), 0, vector))
    return builder.learner(Home(1, np.random.default_rng(0), policy)), builder.config, vector


def batches_for(learner, config):
    """Of each input as many rollouts as it draws."""
    steps = {ROLLOUTS: STEPS, "replayed": STEPS, "rewarded": 3}
    return {
        name: rollouts_for(config, each.batch_size, steps[name])
        for name, each in learner.inputs.items()
    }


@pytest.fixture(name="loss_at")
def _loss_at(method):
    def loss(learner, config, vector, batches):
        """Return the loss of parameters, and its parts."""
        tensors = ParameterTensors(config.network)
        parameters = tensors.by_name(tensors.unpack(vector).tensors)
        graphs = [graph_of(method, batch) for batch in batches.values()]
        return learner.losses.loss(parameters, np.float32(1 / batches[ROLLOUTS].count), *graphs)

    return loss


def test_the_loss_is_the_sum_of_all_by_their_weights(unreal, loss_at):
    learner, config, vector = learner_of(unreal)
    batches = batches_for(learner, config)
    loss, terms = loss_at(learner, config, vector, batches)
    steps = batches[ROLLOUTS].steps / 3
    actor_critic = steps * (
        terms["policy loss"] - 0.01 * terms["entropy"] + 0.5 * terms["value loss"]
    )
    tasks = 0.5 * terms["PixelControl loss"] + 0.3 * terms["ValueReplay loss"]
    expected = actor_critic + tasks + 0.7 * terms["RewardPrediction loss"]
    assert float(loss) == pytest.approx(float(expected), rel=1e-4)


def test_the_gradient_reaches_each_head(unreal):
    learner, config, _ = learner_of(unreal)
    (step,) = learner.steps(batches_for(learner, config))
    parts = config.network.manifest.unpack(step.update.vector)
    for name in ("conv0", "lstm", "policy", "value", "reward_prediction", "pixel_control/deconv0"):
        assert np.abs(parts[f"{name}/kernel"]).max() > 0, name
    assert step.update.computed_with == Version(7)
    assert step.terms["grad"] == pytest.approx(np.linalg.norm(step.update.vector), rel=1e-4)


@pytest.mark.parametrize(
    ("task", "is_untouched"),
    [
        ("pixel_control", ("policy/", "value/", "reward_prediction/")),
        ("value_replay", ("policy/", "pixel_control/", "reward_prediction/")),
        ("reward_prediction", ("policy/", "value/", "pixel_control/", "lstm/")),
    ],
)
def test_a_task_moves_its_head_and_the_layers_below_by_its_weight(unreal, task, is_untouched):
    """Twice the weight adds the same gradient again; other heads have the one that they had."""

    def gradient(weight):
        keys = {**SECTION[task], "weight": weight}
        learner, config, _ = learner_of(unreal, **{task: keys}, RMSProp=NO_CLIPPING)
        (step,) = learner.steps(batches_for(learner, config))
        return step.update.vector, config.network.manifest

    (none, manifest), (once, _), (twice, _) = gradient(1e-9), gradient(1.0), gradient(2.0)
    np.testing.assert_allclose(twice - once, once - none, rtol=2e-3, atol=1e-3 * np.abs(once).max())
    for name, part in manifest.unpack(once - none).items():
        if name.startswith(is_untouched):
            np.testing.assert_allclose(part, 0, atol=1e-5)
        elif name.startswith(("conv0", task)):
            assert np.abs(part).max() > 1e-3, name


NO_CLIPPING = {"decay": 0.99, "epsilon": 1e-5, "gradient_norm_clipping": None}


def test_a_batch_with_fewer_rollouts_has_their_mean_gradient(unreal):
    learner, config, _ = learner_of(unreal, **NO_TASK, value_replay=True)
    batches = batches_for(learner, config)
    few = {**batches, ROLLOUTS: batches[ROLLOUTS].chosen(slice(0, 2))}
    other, _, _ = learner_of(unreal, **NO_TASK, value_replay=True, rollouts_per_update=2)
    (padded,), (exact,) = learner.steps(few), other.steps(few)
    np.testing.assert_allclose(padded.update.vector, exact.update.vector, rtol=1e-3, atol=1e-6)


def padded_to_four(part):
    return zero_padded(part, 4, axis=1)


@pytest.mark.parametrize("task", ["control", "values"])
def test_a_short_batch_of_stored_rollouts_has_their_mean_loss(unreal, method, task):
    """Rollouts of zeros that fill it up are not counted."""
    rollouts = rollouts_for(unreal.Config(SECTION), 2)
    tasks = {"control": (control_of(method), CELLS * 4), "values": (method.ValueReplay(1, 0.95), 1)}
    learnt, width = tasks[task]
    outputs = np.random.default_rng(7).normal(size=(STEPS + 1, 4, width)).astype(np.float32)
    columns = (mapped(padded_to_four, column) for column in rollouts.columns())
    padded = method.GraphRollouts(*columns)
    exact = learnt.loss(outputs[:, :2], graph_of(method, rollouts))
    assert float(learnt.loss(outputs, padded)) == pytest.approx(float(exact), rel=1e-5)


NO_TASK = {"pixel_control": False, "reward_prediction": False}


@pytest.mark.parametrize(
    ("keys", "tables", "heads"),
    [
        ({}, ["replayed", "rewarded"], ["pixel_control", "reward_prediction"]),
        (NO_TASK, ["replayed"], []),
        ({"reward_prediction": False}, ["replayed"], ["pixel_control"]),
        ({"pixel_control": False, "value_replay": False}, ["rewarded"], ["reward_prediction"]),
        ({**NO_TASK, "value_replay": False, "replayed": None}, [], []),
    ],
)
def test_each_task_is_switched_off_alone(unreal, keys, tables, heads):
    learner, config, _ = learner_of(unreal, **keys)
    assert [*learner.inputs] == [ROLLOUTS, *tables]
    assert [*unreal.replay_spec(config).tables] == [ROLLOUTS, *tables]
    assert [head.name for head in config.network.heads] == ["policy", "value", *heads]
    (step,) = learner.steps(batches_for(learner, config))
    assert np.isfinite(step.update.vector).all()


@pytest.mark.parametrize("part", ["icm", "rnd"])
def test_intrinsic_rewards_are_in_returns_and_not_in_the_rewards_to_be_predicted(unreal, part):
    keys = {"state_size": [20, 20, 1], "intrinsic": {"name": part, "hidden_layers": [4]}}
    config = unreal.Config({**SECTION, **keys})
    process = unreal.make_learner(config, 3)
    learner = process.learner
    batches, given = batches_for(learner, config), {}
    for _ in range(2):  # then there are statistics of observations and of returns
        list(process.steps(batches))
    learner.learner.steps = lambda batches: iter([given.update(batches)][1:])
    assert not list(learner.steps(batches))
    assert given["rewarded"] is batches["rewarded"]
    for table in (ROLLOUTS, "replayed"):
        assert (given[table].rewards != batches[table].rewards).any(), table


def test_half_of_the_predicted_rewards_are_not_zero(unreal):
    """One step in fifty has a reward: half of the draws are of those."""
    config = unreal.Config(SECTION)
    spec = unreal.replay_spec(config)
    spec = replace(spec, tables={"rewarded": spec.tables["rewarded"]})
    replay = spec.make(np.random.default_rng(0), 60.0)
    schema = spec.schema.settled({"observation": np.dtype(np.uint8)})
    replay.open_writer("one", schema)
    columns, flags = schema.rows(501), np.zeros(501, np.uint8)  # the last row follows an item
    columns["reward"][49::50] = np.resize([1.0, -2.0], 10)
    columns["observation"][:, 0, 0, 0] = np.arange(501) % 50
    flags[0::50], flags[49::50] = START, TERMINATED
    replay.append("one", 0, 0, columns, flags)
    sample = replay.sample("rewarded", 4000, 1.0)
    rewards = sample.columns["reward"][2]
    counts = Counter(rewards.tolist())
    assert counts[0.0] / 4000 == pytest.approx(0.5, abs=0.03)
    assert counts[1.0] / 4000 == pytest.approx(0.25, abs=0.03)
    frames = sample.columns["observation"][:3, :, 0, 0, 0].astype(int)
    assert (frames[:, rewards != 0] == np.array([[47], [48], [49]])).all()
    first = frames[2] == 0  # before the first state of an episode there is no other
    assert (frames[:2, first] == 0).all()


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"state_size": [4]}, "state_size has no image: write pixel_control: false"),
        (
            {"state_size": {"one": [8, 8], "two": [8, 8]}},
            "has the images one, two: name one of them: image",
        ),
        ({"pixel_control": {"image": "camera"}}, "image: camera is no image in state_size"),
        ({"pixel_control": {"cell": 4}}, "an image of 10x9 pixels has fewer than 4x4 cells of 4x4"),
        ({"action_size": [3, 2]}, "action_size"),
        ({"learner": "worker"}, "learner"),
        ({"history_len": 4}, "history_len"),
        (
            {**NO_TASK, "value_replay": False},
            "replayed: no effect without pixel_control, reward_prediction or value_replay",
        ),
        ({"network": None, "lstm": False, "lstm_size": 2}, "lstm_size: no effect without lstm"),
    ],
)
def test_sections_that_cannot_be_learnt_from_are_refused_by_name(unreal, keys, reason):
    with pytest.raises(ValueError, match=reason):
        unreal.Config({**SECTION, **keys})


def test_vectors_are_learnt_of_without_pixel_control(unreal):
    section = {"state_size": [4], "action_size": 2, "pixel_control": False}
    config = unreal.Config(section)
    assert config.network.encoders.keys() == {"", "previous/action", "previous/reward"}
    assert config.network.lstm_size == 256
    sizes = config.network.joined_size(config.network.shared)
    assert sizes == 64 + 2 + 1  # the last dense layer, the action before and its reward


@pytest.mark.parametrize(("written", "is_there"), [(True, True), (False, False)])
def test_a_section_of_the_actor_critic_is_switched_as_the_tasks_are(unreal, written, is_there):
    settings = unreal.Config({**SECTION, "vtrace": written}).settings
    assert (settings.vtrace is not None) is is_there
