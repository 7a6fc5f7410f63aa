"""The network and its loss against an independent computation in numpy, in float64."""

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
ALL = pytest.mark.parametrize("section", [VECTOR, RECURRENT, IMAGE, IMAGE_RECURRENT])
ENTROPY_BETA, VALUE_LOSS_WEIGHT = 0.3, 0.7


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

    def __init__(self, network, tensors):
        self.network = network
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
        """Return policy loss, value loss and entropy, with the advantages held fixed."""
        logits, values, _ = self.forward(
            rollout.observations, rollout.recurrent_state, rollout.continues
        )
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = exponents / exponents.sum(axis=1, keepdims=True)
        chosen = np.log(probabilities[np.arange(len(logits)), rollout.actions])
        return SimpleNamespace(
            values=values,
            log_probabilities=chosen,
            value=0.5 * np.sum((rollout.returns - values) ** 2),
            entropy=-np.sum(probabilities * np.log(probabilities)),
        )

    def loss(self, rollout, advantages):
        terms = self.losses(rollout)
        policy = -np.sum(terms.log_probabilities * advantages)
        return policy - ENTROPY_BETA * terms.entropy + VALUE_LOSS_WEIGHT * terms.value


@pytest.fixture(name="case")
def _case(da3c, da3c_module, section):
    """A model, its parameters, its numpy twin and a rollout with an episode's start inside."""
    settings = da3c.Config(section).settings
    network = da3c_module("network").Network.of(settings)
    model = da3c_module("model").Model(network, ENTROPY_BETA, VALUE_LOSS_WEIGHT)
    vector = network.initial_parameters(settings.seed)
    generator = np.random.default_rng(11)
    shape = (5, *settings.observation_shape)
    if settings.is_image:
        observations = generator.integers(0, 256, shape, np.uint8)
    else:
        observations = generator.normal(size=shape).astype(np.float32)
    state = generator.normal(size=model.initial_recurrent_state().shape).astype(np.float32)
    rollout = da3c_module("model").RolloutBatch(
        observations=observations,
        actions=generator.integers(0, 3, 5).astype(np.int32),
        returns=generator.normal(size=5).astype(np.float32),
        continues=np.array([1, 1, 1, 0, 1], np.float32),
        recurrent_state=state,
    )
    twin = NumpyNetwork(network, model.manifest.unpack(vector))
    return SimpleNamespace(model=model, vector=vector, rollout=rollout, twin=twin)


@ALL
def test_acting_agrees_with_numpy(case):
    parameters = case.model.unpack(case.vector)
    observation = case.rollout.observations[:1]
    for noise in np.random.default_rng(5).gumbel(size=(20, 1, 3)).astype(np.float32):
        decision = case.model.act(parameters, observation, case.rollout.recurrent_state, noise)
        logits, values, state = case.twin.forward(observation, case.rollout.recurrent_state, [1])
        assert decision.actions.tolist() == np.argmax(logits + noise, axis=1).tolist()
        np.testing.assert_allclose(decision.values, values, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(decision.recurrent_state, state, rtol=1e-4, atol=1e-5)


@ALL
def test_each_loss_term_agrees_with_numpy(case):
    gradients = case.model.gradients(case.model.unpack(case.vector), case.rollout)
    expected = case.twin.losses(case.rollout)
    advantages = case.rollout.returns - expected.values
    policy_loss = -np.sum(expected.log_probabilities * advantages)
    assert gradients.policy_loss == pytest.approx(policy_loss, rel=1e-4)
    assert gradients.value_loss == pytest.approx(expected.value, rel=1e-4)
    assert gradients.entropy == pytest.approx(expected.entropy, rel=1e-4)


@ALL
def test_the_gradient_agrees_with_finite_differences_of_the_numpy_loss(case):
    gradient = case.model.gradients(case.model.unpack(case.vector), case.rollout).vector
    advantages = case.rollout.returns - case.twin.losses(case.rollout).values
    directions = np.random.default_rng(2).normal(size=(8, case.vector.size))
    for direction in directions / np.linalg.norm(directions, axis=1, keepdims=True):
        slope = _slope(case, advantages, direction)
        assert gradient @ direction == pytest.approx(slope, rel=2e-3, abs=2e-4)


def _slope(case, advantages, direction, step=1e-5):
    """The loss's derivative along ``direction``, by central differences in float64."""
    sides = []
    for sign in (1, -1):
        moved = case.vector.astype(np.float64) + sign * step * direction
        tensors = case.model.manifest.unpack(moved)
        sides.append(NumpyNetwork(case.twin.network, tensors).loss(case.rollout, advantages))
    return (sides[0] - sides[1]) / (2 * step)


@pytest.mark.parametrize("section", [VECTOR])
def test_actions_are_drawn_as_often_as_the_policy_says(case):
    parameters = case.model.unpack(case.vector)
    observations = np.repeat(case.rollout.observations[:1], 4000, axis=0)
    state = case.model.initial_recurrent_state(4000)
    noise = np.random.default_rng(1).gumbel(size=(4000, 3)).astype(np.float32)
    actions = case.model.act(parameters, observations, state, noise).actions
    logits, _, _ = case.twin.forward(observations[:1], None, [1])
    expected = np.exp(logits[0]) / np.exp(logits[0]).sum()
    np.testing.assert_allclose(np.bincount(actions) / 4000, expected, atol=0.03)


@pytest.mark.parametrize("section", [RECURRENT])
def test_a_new_episode_inside_a_rollout_forgets_the_one_before(case, da3c_module):
    """The losses of the steps from an episode's start on do not depend on what came before."""
    rollout = case.rollout

    def entropy_of_the_end(first_rows):
        observations = np.concatenate([first_rows, rollout.observations[3:]])
        batch = da3c_module("model").RolloutBatch(
            observations, rollout.actions, rollout.returns, rollout.continues,
            rollout.recurrent_state,
        )  # fmt: skip
        head = da3c_module("model").RolloutBatch(
            observations[:3], rollout.actions[:3], rollout.returns[:3], rollout.continues[:3],
            rollout.recurrent_state,
        )  # fmt: skip
        parameters = case.model.unpack(case.vector)
        whole = case.model.gradients(parameters, batch)
        return whole.entropy - case.model.gradients(parameters, head).entropy

    before = entropy_of_the_end(rollout.observations[:3])
    after = entropy_of_the_end(rollout.observations[:3] * -5)
    assert before == pytest.approx(after, abs=1e-5)


def test_the_seeds_image_network_has_as_many_parameters_as_in_2017(da3c, da3c_module):
    """676,401 + 257 for each action without LSTM, 1,206,339 with it, for 18 actions."""
    sizes = []
    for lstm in (False, True):
        section = {"action_size": 18, "state_size": [84, 84], "history_len": 4, "lstm": lstm}
        network = da3c_module("network").Network.of(da3c.Config(section).settings)
        sizes.append(network.manifest().size)
    assert sizes == [681_027, 1_206_339]


def test_initial_parameters_follow_the_seed_and_stay_in_their_range(da3c, da3c_module):
    network = da3c_module("network").Network.of(da3c.Config(VECTOR).settings)
    assert np.array_equal(network.initial_parameters(3), network.initial_parameters(3))
    assert not np.array_equal(network.initial_parameters(3), network.initial_parameters(4))
    tensors = network.manifest().unpack(network.initial_parameters(3))
    assert 0.3 < np.abs(tensors["dense0/kernel"]).max() <= 0.5
