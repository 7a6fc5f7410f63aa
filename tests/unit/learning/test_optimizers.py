"""Optimisers on a flat vector: against TensorFlow's own, over many steps."""

import tracemalloc

import numpy as np
import pytest

from relaax.parameters.optimizers import SGD, Adam, AdamSettings, RMSProp, RMSPropSettings

SIZE, STEPS = 200, 300

OPTIMIZERS = {
    "RMSProp": lambda size: RMSProp(size, RMSPropSettings()),
    "Adam": lambda size: Adam(size, AdamSettings(weight_decay=0.01)),
    "SGD": lambda size: SGD(size, 0.9),
}


@pytest.fixture(name="make", params=OPTIMIZERS)
def _make(request):
    return OPTIMIZERS[request.param]


def start():
    return np.random.default_rng(1).normal(size=SIZE).astype(np.float32)


def steps():
    """Gradients of very different sizes, some of them 0, and a rate that falls to 0."""
    random = np.random.default_rng(2)
    scale = 10.0 ** random.uniform(-4, 2, SIZE)
    for step in range(STEPS):
        gradient = scale * random.normal(size=SIZE) * (random.random(SIZE) < 0.8)
        yield gradient.astype(np.float32), 0.05 * (1 - step / STEPS)


def moved(optimizer):
    """The parameters after all steps of ``optimizer``."""
    parameters = start()
    for gradient, rate in steps():
        optimizer.apply(parameters, gradient, rate)
    return parameters


def variables(count):
    """The parameters and slots of zeros, as TensorFlow's variables."""
    import tensorflow as tf

    return [tf.Variable(value) for value in (start(), *[np.zeros(SIZE, np.float32)] * (count - 1))]


@pytest.mark.usefixtures("tensorflow")
@pytest.mark.parametrize(("decay", "epsilon"), [(0.99, 0.1), (0.9, 1e-6)])
def test_rmsprop_is_tensorflows(decay, epsilon):
    import tensorflow as tf

    parameters, mean_square, momentum = variables(3)
    for gradient, rate in steps():
        tf.raw_ops.ResourceApplyRMSProp(
            var=parameters.handle, ms=mean_square.handle, mom=momentum.handle, lr=rate, rho=decay,
            momentum=0.0, epsilon=epsilon, grad=gradient,
        )  # fmt: skip
    optimizer = RMSProp(SIZE, RMSPropSettings(decay, epsilon))
    np.testing.assert_allclose(moved(optimizer), parameters, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(optimizer.mean_square, mean_square, rtol=1e-4)


@pytest.mark.usefixtures("tensorflow")
@pytest.mark.parametrize(
    ("beta1", "beta2", "epsilon"), [(0.9, 0.999, 1e-8), (0.5, 0.9, 0.01), (0.0, 0.99, 1e-5)]
)
def test_adam_is_tensorflows(beta1, beta2, epsilon):
    """Given the epsilon of each step: TensorFlow adds it before correcting the bias."""
    import tensorflow as tf

    parameters, mean, mean_square = variables(3)
    for step, (gradient, rate) in enumerate(steps(), start=1):
        tf.raw_ops.ResourceApplyAdam(
            var=parameters.handle, m=mean.handle, v=mean_square.handle, beta1_power=beta1**step,
            beta2_power=beta2**step, lr=rate, beta1=beta1, beta2=beta2,
            epsilon=epsilon * (1 - beta2**step) ** 0.5, grad=gradient,
        )  # fmt: skip
    optimizer = Adam(SIZE, AdamSettings(beta1, beta2, epsilon))
    np.testing.assert_allclose(moved(optimizer), parameters, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(optimizer.mean, mean, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(optimizer.mean_square, mean_square, rtol=1e-3)


@pytest.mark.usefixtures("tensorflow")
def test_decoupled_weight_decay_is_a_step_of_its_own_beside_that_of_adam():
    """TensorFlow's own has none: it is taken off before each step."""
    import tensorflow as tf

    parameters, mean, mean_square = variables(3)
    for step, (gradient, rate) in enumerate(steps(), start=1):
        parameters.assign_sub(rate * 0.1 * parameters)
        tf.raw_ops.ResourceApplyAdam(
            var=parameters.handle, m=mean.handle, v=mean_square.handle, beta1_power=0.9**step,
            beta2_power=0.999**step, lr=rate, beta1=0.9, beta2=0.999, epsilon=1e-9, grad=gradient,
        )  # fmt: skip
    optimizer = Adam(SIZE, AdamSettings(epsilon=1e-9, weight_decay=0.1))
    np.testing.assert_allclose(moved(optimizer), parameters, rtol=1e-3, atol=1e-3)


@pytest.mark.usefixtures("tensorflow")
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_sgd_is_tensorflows(momentum):
    import tensorflow as tf

    parameters, velocity = variables(2)
    for gradient, rate in steps():
        tf.raw_ops.ResourceApplyMomentum(
            var=parameters.handle, accum=velocity.handle, lr=rate, grad=gradient, momentum=momentum
        )
    optimizer = SGD(SIZE, momentum)
    np.testing.assert_allclose(moved(optimizer), parameters, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(optimizer.velocity, velocity, rtol=1e-4, atol=1e-5)


def test_adam_by_hand():
    """Each first step is as long as the rate, whatever the gradient; the second is worked out.

    m = 0.5 * 2 + 0.5 * 0 = 1, corrected by 1 - 0.5**2 to 4 / 3; v = 0.75 * 4 + 0 = 3, corrected by
    1 - 0.75**2 to 48 / 7. With gradients 4 and 0.
    """
    parameters = np.array([10.0], np.float32)
    optimizer = Adam(1, AdamSettings(beta1=0.5, beta2=0.75, epsilon=1e-12))
    optimizer.apply(parameters, np.array([4.0], np.float32), 0.5)
    assert parameters.tolist() == pytest.approx([9.5])
    optimizer.apply(parameters, np.array([0.0], np.float32), 0.5)
    assert parameters.tolist() == pytest.approx([9.5 - 0.5 * (4 / 3) / (48 / 7) ** 0.5])


def test_weight_decay_is_no_part_of_the_gradient():
    """Without a gradient each step takes the rate times the decay of the parameters."""
    parameters = np.array([100.0], np.float32)
    optimizer = Adam(1, AdamSettings(weight_decay=0.1))
    optimizer.apply(parameters, np.zeros(1, np.float32), 0.5)
    assert parameters.tolist() == pytest.approx([95.0])
    assert optimizer.mean.tolist() == [0.0]


def test_a_rate_that_falls_slows_what_has_momentum_at_once():
    parameters = np.array([1.0], np.float32)
    optimizer = SGD(1, 0.5)
    optimizer.apply(parameters, np.array([1.0], np.float32), 0.25)
    optimizer.apply(parameters, np.array([1.0], np.float32), 0.0)
    assert parameters.tolist() == [0.75]


def test_an_update_is_done_in_place_and_takes_no_memory(make):
    size = 100_000
    optimizer, parameters = make(size), np.ones(size, np.float32)
    gradient = np.ones(size, np.float32)
    optimizer.apply(parameters, gradient, 1e-3)
    slots = dict(optimizer.slots())
    tracemalloc.start()
    optimizer.apply(parameters, gradient, 1e-3)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < parameters.nbytes / 20
    assert parameters.dtype == np.float32
    assert (gradient == 1).all()
    assert all(optimizer.slots()[name] is slot for name, slot in slots.items())


def test_slots_have_the_optimisers_name_before_their_own():
    names = {name: sorted(make(2).slots()) for name, make in OPTIMIZERS.items()}
    assert names == {
        "RMSProp": ["rmsprop/mean_square"],
        "Adam": ["adam/mean", "adam/mean_square", "adam/steps"],
        "SGD": ["sgd/velocity"],
    }
