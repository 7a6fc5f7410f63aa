"""The network and its loss against an independent computation in numpy, in float64."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

VECTOR = {"action_size": 3, "state_size": [4], "hidden_layers": [6, 5], "seed": 7}
RECURRENT = {**VECTOR, "lstm": True, "lstm_size": 4}
IMAGE = {
    "action_size": 3,
    "state_size": [28, 36],
    "history_len": 2,
    "hidden_layers": [5],
    "seed": 7,
}
IMAGE_RECURRENT = {**IMAGE, "lstm": True, "lstm_size": 4}
CLIPPED = {**VECTOR, "policy_clip": 0.1}
VTRACE = {**VECTOR, "vtrace": {"clip_rho": 1.5, "clip_c": 0.8}, "trace_decay": 0.7}
EACH_ALONE = [VECTOR, CLIPPED, VTRACE, RECURRENT, IMAGE, IMAGE_RECURRENT]
NORMALIZED = {"normalize_advantages": True}
ALL = pytest.mark.parametrize(
    "section",
    [*EACH_ALONE, {**CLIPPED, **NORMALIZED, "trace_decay": 0.7}, {**VTRACE, **NORMALIZED}],
)
ENTROPY_BETA, VALUE_LOSS_WEIGHT, DISCOUNT = 0.3, 0.7, 0.9
LOSS = {
    "entropy_beta": ENTROPY_BETA,
    "value_loss_weight": VALUE_LOSS_WEIGHT,
    "rewards_gamma": DISCOUNT,
}


def relu(x):
    return np.maximum(x, 0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def convolve(images, kernel, stride):
    """A valid convolution, window by window; images [B, H, W, C], kernel [K, K, C, F]."""
    size = kernel.shape[0]
    rows = (images.shape[1] - size) // stride + 1
    columns = (images.shape[2] - size) // stride + 1
    output = np.zeros((images.shape[0], rows, columns, kernel.shape[3]))
    for row in range(rows):
        for column in range(columns):
            top, left = row * stride, column * stride
            window = images[:, top : top + size, left : left + size, :]
            output[:, row, column] = np.tensordot(window, kernel, axes=3)
    return output


class NumpyNetwork:
    """DA3C's network written a second time."""

    def __init__(self, network, settings, tensors, held=None):
        self.network = network
        self.settings = settings
        #: Targets and advantages, once they are known: they are no functions of the parameters.
        self.held = {} if held is None else held
        self.weights = {name: np.asarray(value, np.float64) for name, value in tensors.items()}

    def forward(self, observations, state, continues):
        """Return logits [T, A], values [T] and the recurrent state after consecutive steps."""
        hidden = np.asarray(observations, np.float64)
        if observations.dtype == np.uint8:
            hidden = hidden / 255
        for index, layer in enumerate(self.network.convolutions):
            bias = self.weights[f"conv{index}/bias"]
            hidden = relu(
                convolve(hidden, self.weights[f"conv{index}/kernel"], layer.stride) + bias
            )
        hidden = hidden.reshape(len(hidden), -1)
        for index in range(len(self.network.dense_units)):
            hidden = relu(self.dense(hidden, f"dense{index}"))
        if self.network.lstm_size:
            hidden, state = self.recur(hidden, state, continues)
        return self.dense(hidden, "policy"), self.dense(hidden, "value")[:, 0], state

    def dense(self, inputs, name):
        return inputs @ self.weights[f"{name}/kernel"] + self.weights[f"{name}/bias"]

    def recur(self, inputs, state, continues):
        (cell,), (output,) = np.asarray(state, np.float64)
        outputs = []
        for row, goes_on in zip(inputs, continues, strict=True):
            cell, output = cell * goes_on, output * goes_on
            gates = self.dense(np.concatenate([row, output]), "lstm")
            admit, candidate, forget, expose = np.split(gates, 4)
            cell = sigmoid(forget + 1.0) * cell + sigmoid(admit) * np.tanh(candidate)
            output = sigmoid(expose) * np.tanh(cell)
            outputs.append(output)
        return np.array(outputs), np.array([[cell], [output]])

    def losses(self, rollout):
        """Return policy loss, value loss and entropy of rollouts, with the targets held fixed."""
        columns = [self._look_at(rollout, column) for column in range(rollout.count)]
        values, chosen, entropies = (np.stack(each, axis=1) for each in zip(*columns, strict=True))
        ratios = np.exp(chosen - rollout.log_probabilities)
        if not self.held:
            self.held["returns"], self.held["advantages"] = self.targets(rollout, values, ratios)
        returns, advantages = self.held["returns"], self.held["advantages"]
        return SimpleNamespace(
            policy=-np.sum(rollout.valid * self.gains(chosen, ratios, advantages)),
            value=0.5 * np.sum(rollout.valid * (returns - values[:-1]) ** 2),
            entropy=np.sum(rollout.valid * entropies),
        )

    def _look_at(self, rollout, column):
        """Return values [T + 1], log-probabilities of the actions [T] and entropies [T]."""
        logits, values, _ = self.forward(
            rollout.observations[:, column],
            rollout.recurrent_state[:, column : column + 1],
            1 - rollout.starts[:, column],
        )
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))[:-1]
        probabilities = exponents / exponents.sum(axis=1, keepdims=True)
        actions = rollout.actions[:, column]
        chosen = np.log(probabilities[np.arange(len(actions)), actions])
        return values, chosen, -np.sum(probabilities * np.log(probabilities), axis=1)

    def targets(self, rollout, values, ratios):
        """Return what values should be, and what the policy loss weighs actions with, [T, K]."""
        settings, shape = self.settings, rollout.rewards.shape
        returns, advantages, weights = np.zeros(shape), np.zeros(shape), np.ones(shape)
        for column in range(rollout.count):
            arrays = [
                array[:, column]
                for array in (rollout.rewards, rollout.terminated, rollout.valid, values, ratios)
            ]
            if settings.vtrace is None:
                returns[:, column] = returns_of(*arrays[:4], settings.trace_decay)
                advantages[:, column] = returns[:, column] - arrays[3][:-1]
            else:
                found = vtrace_of(*arrays, settings.vtrace, settings.trace_decay)
                returns[:, column], advantages[:, column], weights[:, column] = found
        if settings.normalize_advantages:
            steps = advantages[rollout.valid > 0]
            advantages = (advantages - steps.mean()) / steps.std()
        return returns, weights * advantages

    def gains(self, chosen, ratios, advantages):
        """What the policy loss sums: A3C's, or PPO's with a limit to the change of the policy."""
        clip = self.settings.policy_clip
        if clip is None:
            return chosen * advantages
        limited = np.where(
            advantages > 0, np.minimum(ratios, 1 + clip), np.maximum(ratios, 1 - clip)
        )
        return limited * advantages

    def loss(self, rollout):
        terms = self.losses(rollout)
        total = terms.policy - ENTROPY_BETA * terms.entropy + VALUE_LOSS_WEIGHT * terms.value
        return total / rollout.count


def returns_of(rewards, terminated, valid, values, decay):
    """Lambda-returns of one rollout, from the last row backwards."""
    following, returns = values[-1], []
    for step in reversed(range(len(rewards))):
        if valid[step]:
            mixed = (1 - decay) * values[step + 1] + decay * following
            following = rewards[step] + DISCOUNT * (1 - terminated[step]) * mixed
        else:
            following = values[step]
        returns.append(following)
    return np.array(returns[::-1])


def vtrace_of(rewards, terminated, valid, values, ratios, clips, decay):
    """V-trace targets, advantages and their weights of one rollout, from the last row backwards."""
    following, correction, rows = values[-1], 0.0, []
    for step in reversed(range(len(rewards))):
        discount = DISCOUNT * (1 - terminated[step])
        weight = valid[step] * min(ratios[step], clips.clip_rho)
        advantage = rewards[step] + discount * following - values[step]
        trace = valid[step] * decay * min(ratios[step], clips.clip_c)
        difference = rewards[step] + discount * values[step + 1] - values[step]
        correction = weight * difference + discount * trace * correction
        following = values[step] + correction
        rows.append((following, advantage, weight))
    return np.array(rows[::-1]).T


def random_rollouts(da3c_module, settings, lstm_size, count, steps=5):
    """Rollouts with an episode's end, a cut and starts in different places."""
    generator = np.random.default_rng(11)
    shape = (steps + 1, count, *settings.observation_shape)
    if settings.is_image:
        observations = generator.integers(0, 256, shape, np.uint8)
    else:
        observations = generator.normal(size=shape).astype(np.float32)
    ends = generator.integers(0, steps, count)
    cuts = (ends + 2) % steps
    columns = np.arange(count)
    terminated = np.zeros((steps, count), np.float32)
    valid = np.ones((steps, count), np.float32)
    starts = np.zeros((steps + 1, count), np.float32)
    terminated[ends, columns] = 1
    valid[cuts, columns] = 0
    starts[ends + 1, columns] = 1
    starts[cuts + 1, columns] = 1
    return da3c_module("rollouts").RolloutBatch(
        observations=observations,
        starts=starts,
        actions=generator.integers(0, 3, (steps, count)).astype(np.int32),
        log_probabilities=-generator.random((steps, count)).astype(np.float32),
        rewards=generator.normal(size=(steps, count)).astype(np.float32),
        terminated=terminated,
        valid=valid,
        recurrent_state=generator.normal(size=(2, count, lstm_size)).astype(np.float32),
        versions=np.zeros(count, np.int64),
    )


def column_of(rollouts, column):
    """One of several rollouts, alone."""
    parts = {
        field.name: getattr(rollouts, field.name)[:, column : column + 1]
        for field in dataclasses.fields(rollouts)
        if field.name != "versions"
    }
    return dataclasses.replace(rollouts, **parts, versions=rollouts.versions[:1])


@pytest.fixture(name="make_case")
def _make_case(da3c, da3c_module):
    def make(section, count=3, **changes):
        config = da3c.Config({**section, **LOSS, **changes})
        _ = da3c.Agent
        model = da3c_module("model").Model(config.network, config.settings)
        vector = da3c_module("initialization").initial_parameters(
            config.network.manifest(), config.settings.initialization, config.settings.seed
        )
        rollout = random_rollouts(da3c_module, config.settings, config.network.lstm_size, count)
        tensors = model.manifest.unpack(vector)
        twin = NumpyNetwork(config.network, config.settings, tensors)
        return SimpleNamespace(model=model, vector=vector, rollout=rollout, twin=twin)

    return make


@pytest.fixture(name="case")
def _case(make_case, section):
    """A model, its parameters, its numpy twin and three rollouts."""
    return make_case(section)


@ALL
def test_acting_agrees_with_numpy(case):
    """Three environments, which the model pads to four."""
    parameters = case.model.unpack(case.vector)
    observations, state = case.rollout.observations[0], case.rollout.recurrent_state
    for noise in np.random.default_rng(5).gumbel(size=(20, 3, 3)).astype(np.float32):
        decision = case.model.act(parameters, observations, state, noise)
        for row in range(3):
            logits, values, after = case.twin.forward(
                observations[row : row + 1], state[:, row : row + 1], [1]
            )
            action = np.argmax(logits[0] + noise[row])
            log_probability = logits[0, action] - np.log(np.exp(logits[0]).sum())
            assert decision.actions[row] == action
            np.testing.assert_allclose(decision.values[row], values[0], rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(decision.log_probabilities[row], log_probability, rtol=1e-4)
            np.testing.assert_allclose(
                decision.recurrent_state[:, row : row + 1], after, rtol=1e-4, atol=1e-5
            )


@ALL
def test_each_loss_term_agrees_with_numpy(case):
    gradients = case.model.gradients(case.model.unpack(case.vector), case.rollout)
    expected = case.twin.losses(case.rollout)
    assert gradients.policy_loss == pytest.approx(expected.policy, rel=1e-4)
    assert gradients.value_loss == pytest.approx(expected.value, rel=1e-4)
    assert gradients.entropy == pytest.approx(expected.entropy, rel=1e-4)


@ALL
def test_the_gradient_agrees_with_finite_differences_of_the_numpy_loss(case):
    gradient = case.model.gradients(case.model.unpack(case.vector), case.rollout).vector
    case.twin.loss(case.rollout)  # fixes targets and advantages
    directions = np.random.default_rng(2).normal(size=(8, case.vector.size))
    for direction in directions / np.linalg.norm(directions, axis=1, keepdims=True):
        assert gradient @ direction == pytest.approx(_slope(case, direction), rel=2e-3, abs=2e-4)


def _slope(case, direction, step=1e-5):
    """The loss's derivative along ``direction``, by central differences in float64."""
    sides = []
    for sign in (1, -1):
        moved = case.vector.astype(np.float64) + sign * step * direction
        tensors = case.model.manifest.unpack(moved)
        twin = NumpyNetwork(case.twin.network, case.twin.settings, tensors, case.twin.held)
        sides.append(twin.loss(case.rollout))
    return (sides[0] - sides[1]) / (2 * step)


@pytest.mark.parametrize("section", EACH_ALONE)
def test_a_batch_has_the_mean_of_its_rollouts_gradients(case):
    parameters = case.model.unpack(case.vector)
    whole = case.model.gradients(parameters, case.rollout).vector
    parts = [
        case.model.gradients(parameters, column_of(case.rollout, column)).vector
        for column in range(3)
    ]
    np.testing.assert_allclose(whole, np.mean(parts, axis=0), rtol=1e-3, atol=1e-5)


def test_vtrace_weighs_by_what_the_acting_policy_thought(make_case):
    """With the policy's own probabilities it is n-step, and with others it is not."""
    plain, corrected = make_case(VECTOR), make_case(VECTOR, vtrace=True)
    parameters = plain.model.unpack(plain.vector)
    rollout = plain.rollout
    own = np.zeros_like(rollout.log_probabilities)
    for step, column in np.ndindex(own.shape):
        logits = plain.twin.forward(rollout.observations[step, column : column + 1], None, [1])[0]
        own[step, column] = logits[0, rollout.actions[step, column]] - np.log(
            np.exp(logits[0]).sum()
        )
    on_policy = dataclasses.replace(rollout, log_probabilities=own)
    expected = plain.model.gradients(parameters, rollout).vector
    same = corrected.model.gradients(parameters, on_policy).vector
    other = corrected.model.gradients(parameters, rollout).vector
    np.testing.assert_allclose(same, expected, rtol=1e-3, atol=1e-5)
    assert np.abs(other - expected).max() > 0.01


def test_no_action_gains_from_vtrace_and_normalized_advantages_together(make_case):
    """Both actions earn 1, so that no policy is better, whoever chose them.

    A baseline taken off after the weighting would prefer the action that has become improbable.
    """
    case = make_case({**VECTOR, "vtrace": {"clip_rho": 100.0}}, normalize_advantages=True, count=2)
    zeros = np.zeros_like(case.rollout.rewards)
    rollout = dataclasses.replace(
        case.rollout,
        rewards=zeros + 1,
        terminated=zeros + 1,
        valid=zeros + 1,
        log_probabilities=np.log(np.linspace(0.01, 0.9, zeros.size, dtype=np.float32)).reshape(
            zeros.shape
        ),
    )
    vector = np.zeros_like(case.vector)  # a uniform policy, and all values 0
    gradients = case.model.gradients(case.model.unpack(vector), rollout)
    assert gradients.policy_loss == pytest.approx(0.0, abs=1e-4)
    bias = case.model.manifest.unpack(gradients.vector)["policy/bias"]
    np.testing.assert_allclose(bias, 0.0, atol=1e-4)


@pytest.mark.parametrize("section", [VECTOR, IMAGE])
def test_prepared_gradients_are_padded_to_sizes_that_are_ready(case):
    parameters = case.model.unpack(case.vector)
    expected = case.model.gradients(parameters, case.rollout).vector
    case.model.prepare_gradients(parameters, case.rollout.observations.dtype, 9)
    traces = len(case.model._gradients._traces)
    found = case.model.gradients(parameters, case.rollout).vector
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    case.model.gradients(parameters, column_of(case.rollout, 0))
    assert len(case.model._gradients._traces) == traces


@pytest.mark.parametrize("section", [VECTOR])
def test_actions_are_drawn_as_often_as_the_policy_says(case):
    parameters = case.model.unpack(case.vector)
    observations = np.repeat(case.rollout.observations[0, :1], 4000, axis=0)
    state = case.model.initial_recurrent_state(4000)
    noise = np.random.default_rng(1).gumbel(size=(4000, 3)).astype(np.float32)
    actions = case.model.act(parameters, observations, state, noise).actions
    logits, _, _ = case.twin.forward(observations[:1], None, [1])
    expected = np.exp(logits[0]) / np.exp(logits[0]).sum()
    np.testing.assert_allclose(np.bincount(actions) / 4000, expected, atol=0.03)


@pytest.mark.parametrize("section", [RECURRENT])
def test_a_new_episode_inside_a_rollout_forgets_the_one_before(case):
    """The entropies from an episode's start on do not depend on what came before."""
    rollout = column_of(case.rollout, 0)
    starts = np.zeros_like(rollout.starts)
    starts[3] = 1
    valid = np.zeros_like(rollout.valid)
    valid[3:] = 1
    entropies = []
    for factor in (1, -5):
        observations = rollout.observations.copy()
        observations[:3] *= factor
        changed = dataclasses.replace(
            rollout, observations=observations, starts=starts, valid=valid
        )
        gradients = case.model.gradients(case.model.unpack(case.vector), changed)
        entropies.append(gradients.entropy)
    assert entropies[0] == pytest.approx(entropies[1], abs=1e-6)


def test_the_seeds_image_network_has_as_many_parameters_as_in_2017(da3c, da3c_module):
    """676,401 + 257 for each action without LSTM, 1,206,339 with it, for 18 actions."""
    sizes = []
    for lstm in (False, True):
        section = {"action_size": 18, "state_size": [84, 84], "history_len": 4, "lstm": lstm}
        network = da3c_module("network").Network.of(da3c.Config(section).settings)
        sizes.append(network.manifest().size)
    assert sizes == [681_027, 1_206_339]
